package sqlstore

import (
	"testing"

	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/vaulttest"
)

func openClocks(t *testing.T, source string, clocks []vault.Clock) (stores []vault.Store) {
	t.Helper()
	for _, clock := range clocks {
		s, err := Open(t.Context(), source, &Options{Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		stores = append(stores, s)
	}
	return stores
}

func TestSQLiteClocks(t *testing.T) {
	vaulttest.RunClocks(t, func(t *testing.T, clocks ...vault.Clock) []vault.Store {
		return openClocks(t, tempStore(t), clocks)
	})
}

func TestPostgresClocks(t *testing.T) {
	vaulttest.RunClocks(t, func(t *testing.T, clocks ...vault.Clock) []vault.Store {
		return openClocks(t, postgresSchema(t), clocks)
	})
}
