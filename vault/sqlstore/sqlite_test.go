package sqlstore

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"sync"
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

// meddling is a querier in front of which another process creates the schema once a
// number of questions have been answered.
type meddling struct {
	querier
	after int
	once  func()
}

func (m *meddling) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if m.after--; m.after < 0 {
		m.once()
	}
	return m.querier.QueryRowContext(ctx, query, args...)
}

// TestVersionWhileAnotherCreates: a database that another process creates at this moment
// is not taken for one of another program.
func TestVersionWhileAnotherCreates(t *testing.T) {
	for after := range 3 {
		path := filepath.Join(t.TempDir(), "usher.db")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := sql.Open("sqlite", sqliteDSN(path))
		if err != nil {
			t.Fatal(err)
		}
		q := &meddling{querier: db, after: after, once: sync.OnceFunc(func() {
			if other, err := Open(t.Context(), path, nil); err != nil {
				t.Error(err)
			} else {
				_ = other.Close()
			}
		})}
		if _, err := sqliteVersion(t.Context(), q, path); err != nil {
			t.Errorf("created after %d questions: %v", after, err)
		}
		_ = db.Close()
	}
}
