package need

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Database is a PostgreSQL server of one's own, which may be stopped and started
// without harm to others.
type Database struct {
	// URL is where the server is, also after it was stopped and started again.
	URL string

	dir string
}

// OwnPostgres starts a server that ends with the test. It takes about two seconds;
// tests that stop nothing share one with [Postgres].
func OwnPostgres(t testing.TB) *Database {
	t.Helper()
	Postgres(t) // missing is missing, in the same words
	d, err := StartPostgres()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Drop(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// StartPostgres starts a server; the caller drops it.
func StartPostgres() (*Database, error) {
	said, err := postgres("own")
	if err != nil {
		return nil, err
	}
	dir, url, ok := strings.Cut(strings.TrimSpace(said), "\n")
	if !ok {
		return nil, errors.New("scripts/postgres.sh own did not say where the server is")
	}
	return &Database{URL: url, dir: dir}, nil
}

// Halt ends the server as a crash does: nothing is told to its clients, and when it is
// started again it has to recover.
func (d *Database) Halt() error { return d.do("halt") }

// Resume starts the server again and returns when it takes connections.
func (d *Database) Resume() error { return d.do("resume") }

// Drop ends the server and removes its data.
func (d *Database) Drop() error { return d.do("drop") }

func (d *Database) do(what string) error {
	_, err := postgres(what, d.dir)
	return err
}

// postgres runs the script that knows where PostgreSQL is and as whom it runs.
func postgres(args ...string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	var said bytes.Buffer
	cmd := exec.Command(filepath.Join(root, "scripts", "postgres.sh"), args...)
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("scripts/postgres.sh %s: %w: %s", args[0], err, bytes.TrimSpace(said.Bytes()))
	}
	return string(out), nil
}
