package replicas

import (
	"io"
	"net"
	"sync"
	"testing"
)

// balancer carries connections to replicas in turn. It knows nothing of HTTP, asks
// nobody whether they are well, and goes on to the next one when one refuses.
type balancer struct {
	addr string

	mu   sync.Mutex // guards what follows
	to   []*replica
	next int
	open map[net.Conn]bool // connections to replicas
	cut  int               // connections that a kill ended
}

func newBalancer(t *testing.T) *balancer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{addr: l.Addr().String(), open: map[net.Conn]bool{}}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { b.carry(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		b.mu.Lock()
		for c := range b.open {
			_ = c.Close()
		}
		b.mu.Unlock()
		wg.Wait()
	})
	return b
}

func (b *balancer) carry(near net.Conn) {
	defer func() { _ = near.Close() }()
	far, r, lives := b.dial()
	if far == nil {
		return
	}
	defer func() {
		b.mu.Lock()
		delete(b.open, far)
		if now := r.kills.Load(); now != lives || now%2 == 1 {
			b.cut++
		}
		b.mu.Unlock()
		_ = far.Close()
	}()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(far, near) // either end may go at any time
		_ = far.Close()
	}()
	_, _ = io.Copy(near, far)
	_ = near.Close()
	<-done
}

// dial connects to the next replica that accepts, and says how far its kills had
// come before.
func (b *balancer) dial() (net.Conn, *replica, int64) {
	b.mu.Lock()
	first, to := b.next, b.to
	b.next++
	b.mu.Unlock()
	for i := range to {
		r := to[(first+i)%len(to)]
		lives := r.kills.Load()
		c, err := net.Dial("tcp", r.addr)
		if err == nil {
			b.mu.Lock()
			b.open[c] = true
			b.mu.Unlock()
			return c, r, lives
		}
	}
	return nil, nil, 0
}

// before puts the balancer before replicas, and the next connection goes to the first.
func (b *balancer) before(to ...*replica) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.to, b.next = to, 0
}

func (b *balancer) wasCut() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cut
}
