package auth

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/usher-mcp/usher/vault"
)

// steppedClock is the system's clock with a wall clock that is wrong.
type steppedClock struct{ step atomic.Int64 }

func (c *steppedClock) now() vault.Moment {
	m := vault.Now()
	m.Wall = m.Wall.Add(time.Duration(c.step.Load()))
	return m
}

// halting is the store and the network of a child that halts at one step of a refresh:
// it says which, and goes on when it reads a line.
type halting struct {
	vault.Store
	until string // see haltAt
	in    *bufio.Scanner
	live  atomic.Bool // the lease is held

	mu    sync.Mutex
	times map[string]int // how often each step was taken
}

// haltAt names the nth time that a step is taken. How many steps lie between two
// others depends on how busy the machine is, so steps are not numbered.
func haltAt(what string, n int) string { return fmt.Sprint(what, " ", n) }

func (h *halting) step(what string) {
	if !h.live.Load() {
		return
	}
	h.mu.Lock()
	h.times[what]++
	n := h.times[what]
	h.mu.Unlock()
	if haltAt(what, n) != h.until {
		return
	}
	fmt.Println("at", what)
	h.in.Scan()
}

func (h *halting) Lease(ctx context.Context, name string, ttl time.Duration) (vault.Lease, error) {
	l, err := h.Store.Lease(ctx, name, ttl)
	if err == nil {
		h.live.Store(true)
		h.step("lease taken")
	}
	return l, err
}

func (h *halting) Get(ctx context.Context, key vault.Key) (vault.Record, error) {
	rec, err := h.Store.Get(ctx, key)
	h.step(key.Kind + " read")
	return rec, err
}

func (h *halting) Ready(ctx context.Context, room int) error {
	err := h.Store.Ready(ctx, room)
	h.step("store is ready")
	return err
}

func (h *halting) Renew(ctx context.Context, l vault.Lease, ttl time.Duration) (vault.Lease, error) {
	l, err := h.Store.Renew(ctx, l, ttl)
	h.step("lease renewed")
	return l, err
}

func (h *halting) PutFenced(ctx context.Context, key vault.Key, data []byte, v int64, l vault.Lease) (vault.Record, error) {
	if key.Kind == vault.KindGrant {
		h.step("grant not yet written")
	}
	rec, err := h.Store.PutFenced(ctx, key, data, v, l)
	h.step(key.Kind + " written")
	return rec, err
}

func (h *halting) Release(ctx context.Context, l vault.Lease) error {
	h.step("lease not yet released")
	h.live.Store(false)
	return h.Store.Release(ctx, l)
}

func (h *halting) dial(ctx context.Context, network, address string) (net.Conn, error) {
	h.step("not yet connected")
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	h.step("connected")
	return &haltingConn{c, h}, err
}

type haltingConn struct {
	net.Conn
	h *halting
}

func (c *haltingConn) Write(p []byte) (int, error) {
	c.h.step("request not yet written")
	n, err := c.Conn.Write(p)
	c.h.step("request written")
	return n, err
}

func (c *haltingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.h.step("answer read")
	return n, err
}
