package sqlstore

import (
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/usher-mcp/usher/test/need"
	"github.com/usher-mcp/usher/vault"
)

// wire is a line to the database that can be cut and mended.
type wire struct {
	t        *testing.T
	target   string
	address  string
	wg       sync.WaitGroup
	mu       sync.Mutex // guards what follows
	listener net.Listener
	conns    []net.Conn
	down     bool
}

func newWire(t *testing.T, target string) *wire {
	address, err := need.Address() // one that is free again after each cut
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{t: t, target: target, address: address}
	w.mend()
	t.Cleanup(w.cut)
	return w
}

// mend listens, at the same address as before.
func (w *wire) mend() {
	w.t.Helper()
	l, err := net.Listen("tcp", w.address)
	if err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	w.listener, w.down = l, false
	w.mu.Unlock()
	w.wg.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", w.target)
			if err != nil {
				_ = near.Close() // the test sees a refused connection
				continue
			}
			w.mu.Lock()
			if w.conns = append(w.conns, near, far); w.down {
				_, _ = near.Close(), far.Close() // the cut came in between
			}
			w.mu.Unlock()
			w.wg.Go(func() { _, _ = io.Copy(far, near); _ = far.Close() })
			w.wg.Go(func() { _, _ = io.Copy(near, far); _ = near.Close() })
		}
	})
}

// cut ends all connections and refuses new ones.
func (w *wire) cut() {
	w.mu.Lock()
	w.down = true
	_ = w.listener.Close()
	for _, c := range w.conns {
		_ = c.Close()
	}
	w.conns = nil
	w.mu.Unlock()
	w.wg.Wait()
}

// The database goes away and comes back: the store says so, loses nothing,
// works again by itself, and tells what changed meanwhile.
func TestPostgresOutage(t *testing.T) {
	direct := postgresSchema(t)
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	w := newWire(t, u.Host)
	u.Host = w.address
	s, other := openPath(t, u.String()), openPath(t, direct)
	rec := mustPut(t, s, "a", "x")
	sub, err := s.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()

	w.cut()
	if _, err := s.Get(t.Context(), rec.Key); !errors.Is(err, vault.ErrUnavailable) {
		t.Errorf("Get without a database: %v, want ErrUnavailable", err)
	}
	if err := s.Ready(t.Context(), 100); !errors.Is(err, vault.ErrUnavailable) {
		t.Errorf("Ready without a database: %v, want ErrUnavailable", err)
	}
	if _, err := s.Lease(t.Context(), "l", time.Minute); !errors.Is(err, vault.ErrUnavailable) {
		t.Errorf("Lease without a database: %v, want ErrUnavailable", err)
	}
	missed := mustPut(t, other, "b", "y")

	w.mend()
	if got, err := s.Get(t.Context(), rec.Key); err != nil || string(got.Data) != "x" {
		t.Errorf("Get afterwards = %q, %v", got.Data, err)
	}
	if c := nextChange(t, sub); c != (vault.Change{Key: missed.Key, Version: missed.Version}) {
		t.Errorf("told of %+v, want what was missed", c)
	}
}
