package auth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"

	"github.com/usher-mcp/usher/auth/oauth"
)

// Catcher takes the answers of consent pages on the machine where the browser is,
// for logins that an engine on another machine began: it holds no login, no store
// and no verifier, and hands every answer to the one who carries it there. It is as
// indifferent to strangers as the engine's own listener.
type Catcher struct {
	listener listener
	work     sync.WaitGroup
}

// NewCatcher returns a catcher that gives each answer to carry, from several
// goroutines at once. Its error is how the login ended, in the words of
// [Engine.Complete]; the person's browser shows it.
func NewCatcher(carry func(context.Context, Callback) error) *Catcher {
	c := &Catcher{}
	c.listener.spawn = func(f func()) bool {
		c.work.Go(f)
		return true
	}
	c.listener.take = func(w http.ResponseWriter, r *http.Request) {
		if cb, ok := readRequest(w, r); ok {
			writeOutcome(w, carry(r.Context(), cb))
		}
	}
	return c
}

// Listen answers at the loopback address wanted, or on another port when that one is
// taken here, and returns the address. An empty one takes any port.
func (c *Catcher) Listen(wanted string) (string, error) {
	u, err := loopbackURL(wanted)
	if wanted != "" && err != nil {
		return "", err
	}
	if wanted != "" && c.listener.listenOn(u, "") == nil {
		return wanted, nil
	}
	main, err := c.listener.start(memory{})
	if err != nil {
		return "", err
	}
	return main + callbackPath, nil
}

// ListenOn answers at exactly this loopback address.
func (c *Catcher) ListenOn(address string) error {
	u, err := loopbackURL(address)
	if err != nil {
		return err
	}
	return c.listener.listenOn(u, "")
}

func loopbackURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || !oauth.IsLoopback(u.Hostname()) || u.Fragment != "" || u.RawQuery != "" {
		return nil, errors.New("it is no http address of the loopback interface")
	}
	return u, nil
}

// Close lets pages that are being written reach the browser, and ends.
func (c *Catcher) Close() error {
	c.listener.close()
	c.work.Wait()
	return nil
}

// LoopbackAddress is the address at which answers for this store's logins come back,
// if they can: the same one from login to login, for providers that compare them to
// the letter. Nothing listens there by this call.
func (e *Engine) LoopbackAddress(ctx context.Context) (string, error) {
	return e.loopbackAddress(ctx, false)
}
