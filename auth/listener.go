package auth

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/usher-mcp/usher/auth/grants"
	"github.com/usher-mcp/usher/auth/loopback"
	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/vault"
)

func memoryKey() vault.Key { return vault.LocalKey("listener", "loopback") }

// callbackListener is where browsers come back to on this machine.
type callbackListener struct {
	*grants.Env

	pendings *pendingLogins
	server   loopback.Server
	look     time.Duration // listenerLook
}

// identity reads the memory, or makes it. Without a store there is none, and
// any port is as good.
func (cl *callbackListener) identity(ctx context.Context) loopback.Identity {
	var m loopback.Identity
	rec, err := vault.Update(ctx, cl.Store, memoryKey(), func(old []byte) ([]byte, error) {
		m = loopback.Identity{}
		_ = json.Unmarshal(old, &m) // nonsense is replaced
		if m.ID != "" && m.Port != 0 {
			return nil, errKnown
		}
		m = loopback.Identity{Port: loopback.FreePort(), ID: rand.Text()}
		return json.Marshal(m)
	})
	if err != nil && !errors.Is(err, errKnown) || err == nil && json.Unmarshal(rec.Data, &m) != nil {
		return loopback.Identity{}
	}
	return m
}

var errKnown = errors.New("known already")

// address is the redirect address of this process. With listen it answers
// there from now on.
func (cl *callbackListener) address(ctx context.Context, listen bool) (string, error) {
	if address := cl.server.Address(); address != "" {
		return address, nil
	}
	m := cl.identity(ctx)
	if !listen {
		port := m.Port
		if port == 0 {
			port = loopback.FreePort()
		}
		return "http://127.0.0.1:" + strconv.Itoa(port) + loopback.Path, nil
	}
	address, err := cl.server.Start(m)
	if err != nil {
		return "", fmt.Errorf("listen for the answer of the login page: %w; use paste-back instead", engineClosed(err))
	}
	return address, nil
}

// engineClosed is [ErrClosed] for an error of a listener that is closed, else err.
func engineClosed(err error) error {
	if errors.Is(err, loopback.ErrClosed) {
		return ErrClosed
	}
	return err
}

const (
	// listenerLinger is how long the callback listener stays open after the last login
	// that can be answered there has ended: a browser may ask for its page again.
	listenerLinger = time.Minute
	// listenerLook is how often an open listener looks for such logins.
	listenerLook = 5 * time.Second
)

// closeWhenIdle runs from when the callback listener opens until it closes.
func (cl *callbackListener) closeWhenIdle() {
	look := time.NewTicker(cl.look)
	defer look.Stop()
	for {
		select {
		case <-look.C:
		case <-cl.Life.Done():
			return
		}
		if cl.closeIdle(cl.Life, time.Now()) {
			return
		}
	}
}

// closeIdle closes the callback listener if no login has been waiting for it
// for a while, and reports whether it did. The next login opens it again.
func (cl *callbackListener) closeIdle(ctx context.Context, now time.Time) bool {
	return cl.server.CloseIfIdle(cl.pendings.anyWaitsAt(ctx, cl.server.Ports()), now)
}

// anyWaitsAt reports whether a login of any process that shares the store may be
// answered on one of these ports. A store that cannot be read may hold one.
func (pl *pendingLogins) anyWaitsAt(ctx context.Context, ports map[string]bool) bool {
	recs, err := pl.Store.List(ctx, vault.KindPending, vault.Local)
	if err != nil && !errors.Is(err, vault.ErrCorrupt) {
		return true
	}
	for _, rec := range recs {
		p, err := decodePending(rec)
		if err != nil || p.Flow != FlowCode || !time.Now().Before(p.Expires) {
			continue
		}
		if u, err := url.Parse(p.RedirectURI); err == nil && oauth.IsLoopback(u.Hostname()) && ports[oauth.PortOf(u)] {
			return true
		}
	}
	return false
}

// LoopbackAddress is the address at which answers for this store's logins come back,
// if they can: the same one from login to login, for providers that compare them to
// the letter. Nothing listens there by this call.
func (e *Engine) LoopbackAddress(ctx context.Context) (string, error) {
	return e.callbacks.address(ctx, false)
}
