package auth

import (
	"context"
	"sync/atomic"

	"github.com/usher-mcp/usher/vault"
)

// sickStore is a store that fails on request.
type sickStore struct {
	vault.Store
	notReady, noGrants, down atomic.Bool
	gets, looks              atomic.Int64 // at grants
}

func (s *sickStore) Ready(ctx context.Context, room int) error {
	if s.notReady.Load() || s.down.Load() {
		return vault.ErrUnavailable
	}
	return s.Store.Ready(ctx, room)
}

func (s *sickStore) Get(ctx context.Context, key vault.Key) (vault.Record, error) {
	if s.down.Load() {
		return vault.Record{}, vault.ErrUnavailable
	}
	if key.Kind == vault.KindGrant {
		s.gets.Add(1)
	}
	return s.Store.Get(ctx, key)
}

func (s *sickStore) Versions(ctx context.Context, kind, principal string) (map[string]int64, error) {
	if s.down.Load() {
		return nil, vault.ErrUnavailable
	}
	s.looks.Add(1)
	return s.Store.Versions(ctx, kind, principal)
}

func (s *sickStore) Put(ctx context.Context, key vault.Key, data []byte, v int64) (vault.Record, error) {
	if s.noGrants.Load() && key.Kind == vault.KindGrant || s.down.Load() {
		return vault.Record{}, vault.ErrUnavailable
	}
	return s.Store.Put(ctx, key, data, v)
}

func (s *sickStore) PutFenced(ctx context.Context, key vault.Key, data []byte, v int64, l vault.Lease) (vault.Record, error) {
	if s.noGrants.Load() && key.Kind == vault.KindGrant || s.down.Load() {
		return vault.Record{}, vault.ErrUnavailable
	}
	return s.Store.PutFenced(ctx, key, data, v, l)
}
