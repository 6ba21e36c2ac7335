package vault

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Secrets are the values of ${secret:NAME} and the answers to ${input:ID}.
type Secrets struct {
	store     Store
	principal string
}

// NewSecrets returns the secrets of a principal, kept in store.
func NewSecrets(store Store, principal string) *Secrets { return &Secrets{store, principal} }

// SecretInfo tells of a secret without telling it.
type SecretInfo struct {
	Name string
	// Fingerprint tells two values apart; empty when Problem is set.
	Fingerprint string
	Updated     time.Time
	// Problem is why the value cannot be read.
	Problem error
}

func (s *Secrets) key(name string) Key {
	return Key{Kind: KindSecret, Principal: s.principal, Name: name}
}

// Set keeps the value; the last one wins. An empty value is refused: it is most
// likely a slip.
func (s *Secrets) Set(ctx context.Context, name string, value Secret) error {
	if value.IsZero() {
		return fmt.Errorf("keep the secret %s: %w: it is empty", name, ErrInvalid)
	}
	if err := s.put(ctx, name, value); err != nil {
		return fmt.Errorf("keep the secret %s: %w", name, err)
	}
	return nil
}

// put writes without opening what was there: that may be sealed with a key that
// is lost.
func (s *Secrets) put(ctx context.Context, name string, value Secret) error {
	for {
		old, err := Unsealed(s.store).Get(ctx, s.key(name))
		if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrCorrupt) {
			return err // a damaged one was set aside, and its version is 0
		}
		_, err = s.store.Put(ctx, s.key(name), []byte(value.Reveal()), old.Version)
		if !errors.Is(err, ErrConflict) {
			return err
		}
	}
}

// Get returns the value, or [ErrNotFound].
func (s *Secrets) Get(ctx context.Context, name string) (Secret, error) {
	rec, err := s.store.Get(ctx, s.key(name))
	if err != nil {
		return Secret{}, fmt.Errorf("read the secret %s: %w", name, err)
	}
	return NewSecret(string(rec.Data)), nil
}

// Names lists the names of all secrets. It needs no key.
func (s *Secrets) Names(ctx context.Context) ([]string, error) {
	recs, err := Unsealed(s.store).List(ctx, KindSecret, s.principal)
	if err != nil && !errors.Is(err, ErrCorrupt) {
		return nil, fmt.Errorf("list secrets: %w", err)
	}
	names := make([]string, 0, len(recs))
	for _, rec := range recs {
		names = append(names, rec.Name)
	}
	return names, nil
}

// List tells of all secrets, in the order of their names. Those that do not open
// are told of too.
func (s *Secrets) List(ctx context.Context) ([]SecretInfo, error) {
	recs, err := Unsealed(s.store).List(ctx, KindSecret, s.principal)
	if err != nil && !errors.Is(err, ErrCorrupt) {
		return nil, fmt.Errorf("list secrets: %w", err)
	}
	infos := make([]SecretInfo, 0, len(recs))
	var keyless error // the same for all: asked once
	for _, rec := range recs {
		info := SecretInfo{Name: rec.Name, Updated: rec.Updated, Problem: keyless}
		if keyless == nil {
			value, err := s.Get(ctx, rec.Name)
			if errors.Is(err, ErrNotFound) {
				continue // removed just now
			}
			if errors.Is(err, ErrUnavailable) {
				keyless = err
			}
			if info.Problem = err; err == nil {
				info.Fingerprint = value.String()
			}
		}
		infos = append(infos, info)
	}
	return infos, err
}

// Remove forgets a secret, also one that does not open. It fails with
// [ErrNotFound] when there is none.
func (s *Secrets) Remove(ctx context.Context, name string) error {
	if _, err := Unsealed(s.store).Take(ctx, s.key(name)); err != nil {
		return fmt.Errorf("remove the secret %s: %w", name, err)
	}
	return nil
}
