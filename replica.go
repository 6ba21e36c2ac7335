package usher

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/gateway"
	"github.com/usher-mcp/usher/vault"
)

// Shared reports whether the store is one that other machines may use too: then
// other hosts may serve the same agents.
func (h *Host) Shared() bool { return h.shared }

// Replica serves this host to agents as one of several behind the same address: peer
// is where the others reach it. All of them use the same store and the same key.
func (h *Host) Replica(ctx context.Context, auth gateway.Authenticator, peer string) (*gateway.Gateway, error) {
	key, err := h.gatewayKey(ctx)
	if err != nil {
		return nil, fmt.Errorf("share sessions with other gateways: %w", err)
	}
	opt := h.gatewayOptions(auth)
	opt.Key, opt.Peer = key, peer
	return gateway.New(h.Surface(), opt), nil
}

const gatewayKeyLen = 32

// gatewayKey is the key that all gateways on this store seal with; the first one
// makes it.
func (h *Host) gatewayKey(ctx context.Context) ([]byte, error) {
	k := vault.LocalKey(vault.KindGateway, "key")
	rec, err := h.store.Get(ctx, k)
	if errors.Is(err, vault.ErrNotFound) {
		fresh := make([]byte, gatewayKeyLen)
		_, _ = rand.Read(fresh) // never fails
		if rec, err = h.store.Put(ctx, k, fresh, 0); errors.Is(err, vault.ErrConflict) {
			rec, err = h.store.Get(ctx, k)
		}
	}
	if err == nil && len(rec.Data) != gatewayKeyLen {
		err = &vault.CorruptError{Key: k, Err: fmt.Errorf("%d bytes are no key", len(rec.Data))}
	}
	return rec.Data, err
}

const (
	// singletonLease is for how long a store may be away before another host may
	// start a singleton.
	singletonLease = 30 * time.Second
	// singletonWait is how long a host waits for another one that is about to end.
	singletonWait = 3 * time.Second
)

// singleton takes the lease of a server that must run only once on all hosts that
// share the store, and keeps it until release. A host that loses it, because its
// store was away for too long, stops the server.
func (h *Host) singleton(ctx context.Context, srv config.Server) (release func(), err error) {
	ctx, stop := context.WithTimeout(ctx, singletonWait)
	defer stop()
	lease, err := vault.Acquire(ctx, h.store, "singleton/"+srv.Name, singletonLease)
	if held, ok := errors.AsType[*vault.HeldError](err); ok {
		return nil, fmt.Errorf("it runs only once, and does so in usher %s: call it there, or end it there with `usher stop %s`", held.Holder, srv.Name)
	}
	if err != nil {
		return nil, err
	}
	return vault.Keep(h.store, lease, singletonLease, func(err error) {
		if h.log != nil {
			h.log.Error("a server that may run only once is stopped: another usher may start it now", "server", srv.Name, "error", err)
		}
		_ = h.hosted.Stop(srv.Name) // fails for a server that is gone anyway
	}), nil
}
