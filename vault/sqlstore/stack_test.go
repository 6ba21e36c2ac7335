package sqlstore

import (
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/usher-mcp/usher/vault"
)

// What deepen makes room for is enough for reading and writing: the stack of a
// goroutine that is new stays where it is.
func TestDeepen(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "usher.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	key := vault.Key{Kind: "stack", Principal: "local", Name: "a"}
	if _, err := s.Put(t.Context(), key, []byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	work := func() error {
		if _, err := s.Add(t.Context(), key, 1); err != nil {
			return err
		}
		_, err := s.Get(t.Context(), key)
		return err
	}
	// A collection that comes at this moment takes unused room away again.
	for range 10 {
		moved := make(chan bool, 1)
		go func() {
			var here byte
			deepen(false)
			before := uintptr(unsafe.Pointer(&here))
			err := work()
			moved <- err != nil || before != uintptr(unsafe.Pointer(&here))
		}()
		if !<-moved {
			return
		}
	}
	t.Error("the stack was moved each time")
}
