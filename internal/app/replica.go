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

// SharedStore reports whether other machines may use the store too: then other gateways
// may serve the same agents.
func (h *App) SharedStore() bool { return h.shared }

// Replica serves this process to agents as one of several gateways behind the same
// address: peer is where the others reach it. All use the same store and the same key.
func (f Frontend) Replica(ctx context.Context, auth authn.Authenticator, peer string) (*gateway.Gateway, error) {
	key, err := gatewayKey(ctx, f.h.store)
	if err != nil {
		return nil, fmt.Errorf("share sessions with other gateways: %w", err)
	}
	f.h.singleton.SetPeer(peer)
	opt := f.gatewayOptions(auth)
	opt.Key, opt.Peer = key, peer
	return gateway.New(f.Surface(), opt), nil
}

const gatewayKeyLen = 32

// gatewayKey is the key that all gateways on this store seal with; the first one
// makes it.
func gatewayKey(ctx context.Context, store vault.Store) ([]byte, error) {
	k := vault.LocalKey(vault.KindGateway, "key")
	rec, err := store.Get(ctx, k)
	if errors.Is(err, vault.ErrNotFound) {
		fresh := make([]byte, gatewayKeyLen)
		_, _ = rand.Read(fresh) // never fails
		if rec, err = store.Put(ctx, k, fresh, 0); errors.Is(err, vault.ErrConflict) {
			rec, err = store.Get(ctx, k)
		}
	}
	if err == nil && len(rec.Data) != gatewayKeyLen {
		err = &vault.CorruptError{Key: k, Err: fmt.Errorf("invalid key length: %d bytes", len(rec.Data))}
	}
	return rec.Data, err
}
