package sqlstore

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/vault"
)

// schema lists what the database consists of.
func schema(t *testing.T, path string) []string {
	t.Helper()
	s, err := connect(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }() // only read from
	rows, err := s.db.QueryContext(t.Context(), `SELECT sql FROM sqlite_schema
		WHERE name NOT LIKE 'sqlite_%' AND sql IS NOT NULL ORDER BY name`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }() // rows.Err has the last word
	var all []string
	for rows.Next() {
		var sql string
		if err := rows.Scan(&sql); err != nil {
			t.Fatal(err)
		}
		all = append(all, sql)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// Every step leads back to what was before it, and records survive the way to
// and fro.
func TestMigrateBothWays(t *testing.T) {
	path := tempStore(t)
	var before [][]string
	for v := range SchemaVersion() {
		if err := Migrate(t.Context(), path, v); err != nil {
			t.Fatal(err)
		}
		before = append(before, schema(t, path))
	}
	s := openPath(t, path) // the last step up
	rec := mustPut(t, s, "a", "x")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Migrate(t.Context(), path, SchemaVersion()-1); err != nil {
		t.Fatal(err)
	}
	s = openPath(t, path)
	if got, err := s.Get(t.Context(), rec.Key); err != nil || got.Version != rec.Version {
		t.Errorf("after one step back and up: %+v, %v", got, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for v := SchemaVersion() - 1; v >= 0; v-- {
		if err := Migrate(t.Context(), path, v); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before[v], schema(t, path)); diff != "" {
			t.Errorf("back at schema %d (-before +after):\n%s", v, diff)
		}
	}
	for _, v := range []int{-1, SchemaVersion() + 1} {
		if err := Migrate(t.Context(), path, v); err == nil {
			t.Errorf("migrated to schema %d", v)
		}
	}
}

// Many that find an empty file make one schema.
func TestMigrateAtOnce(t *testing.T) {
	path := tempStore(t)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			s, err := Open(t.Context(), path, nil)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := s.Add(t.Context(), vault.LocalKey("test", "n"), 1); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n, err := openPath(t, path).Add(t.Context(), vault.LocalKey("test", "n"), 0); n != 6 || err != nil {
		t.Errorf("counted %d, %v; want 6", n, err)
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	path := tempStore(t)
	s := openPath(t, path)
	mustPut(t, s, "a", "x")
	if err := setSQLiteVersion(t.Context(), s.db, SchemaVersion()+1); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	was := schema(t, path)
	_, err := Open(t.Context(), path, nil)
	if !errors.Is(err, vault.ErrNewer) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "upgrade usher") {
		t.Errorf("Open = %v; want ErrNewer, the file and the way out", err)
	}
	if err := Migrate(t.Context(), path, 0); !errors.Is(err, vault.ErrNewer) {
		t.Errorf("Migrate = %v; want ErrNewer: this program does not know the way back", err)
	}
	if diff := cmp.Diff(was, schema(t, path)); diff != "" {
		t.Errorf("the refused file was changed:\n%s", diff)
	}
}
