package keys

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/usher-mcp/usher/vault"
)

// Status tells where the key of a store is, without needing it.
type Status struct {
	// Setting is where the configuration says that the key is kept.
	Setting string
	// Made is false as long as no secret has been kept: there is no key then.
	Made bool
	// Places are where master keys that open the store are kept: one, or two
	// while a rotation is unfinished, the newest last.
	Places []Place
	// Created is when the data key that seals now was made.
	Created time.Time
	// DataKeys counts the data keys, retired ones included.
	DataKeys int
}

// Place is one master key.
type Place struct {
	// Place is keychain, passphrase, file:PATH or env:NAME.
	Place string
	// ID is a fingerprint of the key.
	ID      string
	Created time.Time
}

// Unfinished says that a rotation was interrupted; the next one finishes it.
func (s Status) Unfinished() bool { return len(s.Places) > 1 }

// Statement says in a sentence for people where the key is.
func (s Status) Statement() string {
	if !s.Made {
		return fmt.Sprintf("no secret has been kept yet, so there is no key; it will be kept in: %s", describePlace(s.Setting))
	}
	var where []string
	for _, p := range s.Places {
		where = append(where, describePlace(p.Place))
	}
	return "the key that opens this store's secrets is kept in " + strings.Join(where, ", and in ")
}

func describePlace(place string) string {
	kind, rest, _ := strings.Cut(place, ":")
	switch kind {
	case "auto":
		return "the operating system's keychain if it answers, else a file in the state directory"
	case keychainName:
		return "the operating system's keychain"
	case passphraseName:
		return "the store itself, under a passphrase that you know"
	case "env":
		return "the environment variable " + rest
	case "file":
		return "the file " + rest + ", which only your user can read"
	}
	return place
}

// Status reads where the key is kept. It asks no keychain and no person.
func (k *Keys) Status(ctx context.Context) (Status, error) {
	s := Status{Setting: k.opt.Setting}
	rec, err := k.readRing(ctx)
	if errors.Is(err, vault.ErrNotFound) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	r, err := decodeRing(rec)
	if err != nil {
		return s, err
	}
	s.Made, s.DataKeys = true, len(r.Keys)
	for _, l := range r.Locks {
		s.Places = append(s.Places, Place{Place: l.Place, ID: l.ID, Created: l.Created})
	}
	for _, dk := range r.Keys {
		if dk.ID == r.Current {
			s.Created = dk.Created
		}
	}
	return s, nil
}
