package app

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"

	"github.com/usher-mcp/usher/vault"
)

// tokenStore keeps the hashes of minted tokens in the store. They belong to the
// gateway, not to a principal: a token says itself whose it is.
type tokenStore struct {
	records vault.Records
	log     *slog.Logger
}

func tokenKey(id string) vault.Key { return vault.LocalKey(vault.KindToken, id) }

// Load returns a record, nil when there is none. One that is not authentic is none:
// somebody wrote it past usher.
func (t tokenStore) Load(ctx context.Context, id string) ([]byte, error) {
	r, err := t.records.Get(ctx, tokenKey(id))
	if errors.Is(err, vault.ErrTampered) {
		t.log.Warn("a token was refused because its record is not authentic", "token", id, "error", err)
		return nil, nil
	}
	if errors.Is(err, vault.ErrNotFound) {
		return nil, nil
	}
	return r.Data, err
}

// Save writes a new record.
func (t tokenStore) Save(ctx context.Context, id string, record []byte) error {
	_, err := t.records.Put(ctx, tokenKey(id), record, 0)
	return err
}

// Remove deletes a record, also one that is not authentic, and reports whether there
// was one.
func (t tokenStore) Remove(ctx context.Context, id string) (bool, error) {
	_, err := t.records.Take(ctx, tokenKey(id))
	if errors.Is(err, vault.ErrNotFound) {
		return false, nil
	}
	if errors.Is(err, vault.ErrTampered) {
		return true, nil
	}
	return err == nil, err
}

// IDs returns the ids of all records.
func (t tokenStore) IDs(ctx context.Context) ([]string, error) {
	versions, err := t.records.Versions(ctx, vault.KindToken, vault.Local)
	return slices.Collect(maps.Keys(versions)), err
}

// All returns every record that is authentic.
func (t tokenStore) All(ctx context.Context) ([][]byte, error) {
	list, err := t.records.List(ctx, vault.KindToken, "")
	if errors.Is(err, vault.ErrTampered) {
		t.log.Warn("tokens are left out because their records are not authentic", "error", err)
		err = nil
	}
	out := make([][]byte, len(list))
	for i, r := range list {
		out[i] = r.Data
	}
	return out, err
}
