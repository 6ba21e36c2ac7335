package sqlstore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/vault"
)

// A slip of the pen in a URL makes no file with the password in its name, and the
// password is not shown.
func TestUnknownSourcesAreRefused(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, source := range []string{
		"postgre://ann:hunter2@db/usher", "postgress://ann:hunter2@db/usher", "Postgres://ann:hunter2@db/usher",
		"postgres:/ann:hunter2@db/usher", "postgres:ann:hunter2@db", "mysql://ann:hunter2@db/usher", "sqlite://ann:hunter2@db",
		"sqlite:postgre://ann:hunter2@db", "redis:hunter2", "file:hunter2.db", " postgres://ann:hunter2@db/usher",
		"/state/postgre://ann:hunter2@db", "host=db user=ann password=hunter2", "user=ann password=hunter2 host=db",
	} {
		_, openErr := Open(t.Context(), source, nil)
		_, repairErr := Repair(t.Context(), source)
		for what, err := range map[string]error{"open": openErr, "repair": repairErr, "migrate": Migrate(t.Context(), source, 1)} {
			if !errors.Is(err, vault.ErrInvalid) {
				t.Errorf("%s %q: %v, want ErrInvalid", what, source, err)
			} else if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s %q shows the password: %v", what, source, err)
			}
		}
	}
	if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
		t.Errorf("files were made: %v, %v", made, err)
	}
	for _, source := range []string{
		"usher.db", filepath.Join(dir, "usher.db"), "sqlite:usher.db", "sqlite:" + filepath.Join(dir, "usher.db"), "./a:b.db", "../x/host=1/a.db",
		"postgres://ann@db/usher", "postgresql://ann@db/usher", "~/usher.db", filepath.Join(dir, "password = x", "usher.db"),
	} {
		if err := CheckSource(source); err != nil {
			t.Errorf("%q is refused: %v", source, err)
		}
	}
}
