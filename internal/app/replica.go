package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/usher-mcp/usher/gateway"
	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/vault"
)

// Shared reports whether the store is one that other machines may use too: then
// other hosts may serve the same agents.
func (h *App) Shared() bool { return h.shared }

// Replica serves this host to agents as one of several behind the same address: peer
// is where the others reach it. All of them use the same store and the same key.
func (h *App) Replica(ctx context.Context, auth authn.Authenticator, peer string) (*gateway.Gateway, error) {
	key, err := h.gatewayKey(ctx)
	if err != nil {
		return nil, fmt.Errorf("share sessions with other gateways: %w", err)
	}
	h.peer.Store(&peer)
	opt := h.gatewayOptions(auth)
	opt.Key, opt.Peer = key, peer
	return gateway.New(h.Surface(), opt), nil
}

const gatewayKeyLen = 32

// gatewayKey is the key that all gateways on this store seal with; the first one
// makes it.
func (h *App) gatewayKey(ctx context.Context) ([]byte, error) {
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
