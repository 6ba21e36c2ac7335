package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/usher-mcp/usher/internal/retry"
	"github.com/usher-mcp/usher/mcp"
)

// Subscription says which changes a caller wants to hear of.
type Subscription struct {
	Tools     bool     `json:"toolsListChanged,omitempty"`
	Prompts   bool     `json:"promptsListChanged,omitempty"`
	Resources bool     `json:"resourcesListChanged,omitempty"`
	URIs      []string `json:"resourceSubscriptions,omitempty"`
	// Ready is called, perhaps more than once, when the server has confirmed: what
	// changes from then on is heard. It must not block; nil does nothing.
	Ready func() `json:"-"`
	// Lost is called when a stream that was confirmed has ended: changes are missed until
	// Ready is called again. It must not block; nil does nothing.
	Lost func() `json:"-"`
}

// listenHealthy is how long a stream must have lived for its end not to count as
// one failure more.
const listenHealthy = 30 * time.Second

// Listen receives changes until ctx ends and passes them to on, which must not block.
// In the stateless protocol it keeps a `subscriptions/listen` request open and reopens
// it, with backoff, when it breaks; a refusal by the server ends it, unless it has
// worked before and Options.Refused knows what to do. In the legacy protocol servers
// send list changes to Options.OnNotification unasked, so it only subscribes to
// resources.
func (c *Conn) Listen(ctx context.Context, want Subscription, on func(mcp.Message)) error {
	ready, lost := want.Ready, want.Lost
	if ready == nil {
		ready = func() {}
	}
	if lost == nil {
		lost = func() {}
	}
	if !mcp.Stateless(c.version) {
		if err := c.subscribe(ctx, want.URIs); err != nil {
			return err
		}
		ready()
		return nil
	}
	params, err := json.Marshal(struct {
		Notifications Subscription `json:"notifications"`
	}{want})
	if err != nil {
		return err
	}
	wait := retry.Backoff{First: time.Second, Limit: time.Minute}
	var worked atomic.Bool
	for {
		began := time.Now()
		acknowledged := sync.OnceFunc(ready) // a server may say so again and again
		_, err := c.Do(ctx, mcp.Request{Method: mcp.MethodListen, Params: params, OnNotification: func(m mcp.Message) {
			if m.Method == mcp.MethodNotifyListenOK {
				worked.Store(true)
				acknowledged()
			} else {
				on(m)
			}
		}})
		if worked.Load() {
			lost()
		}
		var refused *mcp.Error
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &refused), errors.Is(err, ErrClosed):
			return err
		case errors.Is(err, ErrUnauthorized) && (!worked.Load() || !c.mayTryAgain(ctx, err)):
			return err // it never was for us, or is not any more
		case c.over.Err() != nil:
			return err // a new connection listens again
		}
		if time.Since(began) > listenHealthy {
			wait.Reset()
		}
		if err := retry.Sleep(ctx, wait.Next()); err != nil {
			return err
		}
	}
}

func (c *Conn) subscribe(ctx context.Context, uris []string) error {
	for _, uri := range uris {
		params, err := json.Marshal(map[string]string{"uri": uri})
		if err != nil {
			return err
		}
		if _, err := c.Do(ctx, mcp.Request{Method: mcp.MethodSubscribe, Params: params}); err != nil {
			return err
		}
	}
	return nil
}
