package loopback

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"

	"github.com/usher-mcp/usher/auth/oauth"
)

// Listener receives callbacks on the machine where the browser is, for logins that an
// engine on another machine began. It has no login, no store and no verifier: it hands
// each callback to a function that forwards it. Like the engine's own listener it ignores
// requests that are not callbacks.
type Listener struct {
	listener Server
	work     sync.WaitGroup
}

// NewListener returns a listener that gives each callback to receive, from several
// goroutines at once. The browser is shown the outcome.
func NewListener(receive func(context.Context, oauth.Callback) Outcome) *Listener {
	c := &Listener{}
	c.listener.Spawn = func(f func()) bool {
		c.work.Go(f)
		return true
	}
	c.listener.Receive = func(w http.ResponseWriter, r *http.Request) {
		if cb, ok := ReadRequest(w, r); ok {
			WriteOutcome(w, receive(r.Context(), cb))
		}
	}
	return c
}

// Listen answers at the loopback address wanted, or on another port when that one is
// taken here, and returns the address. An empty one takes any port.
func (c *Listener) Listen(wanted string) (string, error) {
	u, err := loopbackURL(wanted)
	if wanted != "" && err != nil {
		return "", err
	}
	if wanted != "" && c.listener.ListenOn(u, "") == nil {
		return wanted, nil
	}
	return c.listener.Start(Identity{})
}

// ListenOn answers at exactly this loopback address.
func (c *Listener) ListenOn(address string) error {
	u, err := loopbackURL(address)
	if err != nil {
		return err
	}
	return c.listener.ListenOn(u, "")
}

func loopbackURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || !oauth.IsLoopback(u.Hostname()) || u.Fragment != "" || u.RawQuery != "" {
		return nil, errors.New("it is not an http address of the loopback interface")
	}
	return u, nil
}

// Close lets pages that are being written reach the browser, and ends.
func (c *Listener) Close() error {
	c.listener.Close()
	c.work.Wait()
	return nil
}
