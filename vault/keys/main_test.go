package keys_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/usher-mcp/usher/vault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openMemory(t *testing.T) vault.Store {
	s := vault.NewMemory()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
