package pins

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/usher-mcp/usher/vault"
)

// How long the store may take for the pins of an account. For the first read it is
// longer: there is nothing to go on with, and the call fails without it.
const (
	storeTimeout      = 2 * time.Second
	firstStoreTimeout = 15 * time.Second
)

// Observer compares the lists of one account with its pins and keeps them up to date.
// It must not be used concurrently.
type Observer struct {
	Records vault.Records
	Lock    *Lock // stands in for pins that do not exist yet; nil for none
	Log     *slog.Logger

	Principal string
	Server    string
	Account   string // empty for the default one

	last []byte // the record as last read
}

// Name is server, or server@account.
func (o *Observer) Name() string {
	if o.Account == "" {
		return o.Server
	}
	return o.Server + "@" + o.Account
}

// Observe compares a list with the pins in the store, in one read and at most one
// write. The result has what is to say about each tool, by name. While the store is
// away it goes on with the record as last read. The store is not left in the middle of
// a write when ctx ends, but definitions are then read no further.
func (o *Observer) Observe(ctx context.Context, tools []Definition) (map[string]*Observation, []Note, error) {
	base, err := o.base(ctx)
	if err != nil {
		return nil, nil, err
	}
	u := update{observer: o, asker: ctx, tools: tools, base: base, now: time.Now().UTC().Truncate(time.Millisecond)}
	wait := storeTimeout
	if o.last == nil {
		wait = firstStoreTimeout
	}
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait)
	defer cancel()
	rec, err := vault.Update(detached, o.Records, o.key(o.Name()), u.apply)
	if errors.Is(err, vault.ErrCorrupt) && !errors.Is(err, vault.ErrTampered) {
		o.Log.Warn("the pins of a server were damaged and are taken again", "server", o.Name(), "error", err)
		rec, err = vault.Update(detached, o.Records, o.key(o.Name()), u.apply) // the damaged record was set aside
	}
	switch {
	case err == nil:
		o.last = rec.Data
	case errors.Is(err, errNothing):
	case ctx.Err() != nil:
		return nil, nil, err
	case o.last == nil:
		return nil, nil, fmt.Errorf("pins of %s: %w", toolName(o.Name(), ""), err)
	default:
		o.Log.Warn("pins cannot be read or written for now", "server", o.Server, "error", err)
		if _, err := u.apply(o.last); err != nil && !errors.Is(err, errNothing) {
			return nil, nil, err
		}
	}
	return u.found, u.notes, nil
}

func (o *Observer) key(name string) vault.Key {
	return vault.Key{Kind: vault.KindPin, Principal: cmp.Or(o.Principal, vault.Local), Name: name}
}

// base returns the pins that a named account starts from: those of the server. It is
// nil when the account has a record of its own, or the server has none.
func (o *Observer) base(ctx context.Context) (*record, error) {
	if o.Account == "" || o.last != nil {
		return nil, nil
	}
	rec, err := o.Records.Get(ctx, o.key(o.Server))
	if errors.Is(err, vault.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("pins of %s: %w", o.Server, err)
	}
	return decode(rec.Data)
}

// update is one change of a record; the store may apply it several times.
type update struct {
	observer *Observer
	asker    context.Context
	tools    []Definition
	base     *record
	now      time.Time

	found map[string]*Observation
	notes []Note
}

// apply returns the record after the list was compared with it.
func (u *update) apply(old []byte) ([]byte, error) {
	rec, err := decode(old)
	if err != nil {
		return nil, err
	}
	o := u.observer
	o.last = old
	seeded := o.Lock.seed(o.Name(), rec, u.now)
	if old == nil && u.base != nil {
		seeded = rec.startFrom(u.base, u.tools) || seeded
	}
	write := false
	if u.found, u.notes, write, err = rec.observe(u.asker, u.tools, u.now); err != nil {
		return nil, err
	}
	if !write && !seeded {
		return nil, errNothing
	}
	return rec.encode()
}
