package sqlstore

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/vaulttest"
)

func TestMain(m *testing.M) {
	if job := os.Getenv(childMode); job != "" {
		os.Exit(runChild(job))
	}
	goleak.VerifyTestMain(m)
}

// tempStore names a store file that is not there yet, in a directory with
// characters that a careless URL would trip over.
func tempStore(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "state #1?%20 ü", "usher.db")
}

func openPath(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), path, &Options{Poll: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestSQLiteContract(t *testing.T) {
	t.Parallel() // it mostly waits for the disk
	vaulttest.Run(t, func(t *testing.T) vault.Store { return openPath(t, tempStore(t)) })
}
