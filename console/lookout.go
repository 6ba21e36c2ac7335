package console

import (
	"context"
	"sync"
	"time"
)

// How long what was looked at is good for another look. Several browsers, and the
// regions of one page, share it.
const (
	freshServers = 200 * time.Millisecond
	freshPins    = time.Second
)

// lookout remembers what the world said a moment ago.
type lookout struct {
	mu        sync.Mutex // guards what follows; held while the world is asked, so that one asks
	servers   []Server
	serversAt time.Time
	pins      []Pin
	pinsErr   error
	pinsAt    time.Time
}

func (c *Console) servers(ctx context.Context) []Server {
	l := &c.seen
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.serversAt) > freshServers {
		l.servers, l.serversAt = c.world.Servers(ctx), time.Now()
	}
	return l.servers
}

func (c *Console) pins(ctx context.Context) ([]Pin, error) {
	l := &c.seen
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.pinsAt) > freshPins {
		l.pins, l.pinsErr = c.world.Pins(ctx)
		l.pinsAt = time.Now()
	}
	return l.pins, l.pinsErr
}

// forget makes the next look a fresh one, after something was done.
func (c *Console) forget() {
	l := &c.seen
	l.mu.Lock()
	defer l.mu.Unlock()
	l.serversAt, l.pinsAt = time.Time{}, time.Time{}
}
