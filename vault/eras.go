package vault

import (
	"context"
	"errors"
	"time"
)

// Era is what a server was last found to speak, so that the next connection
// need not probe.
type Era struct {
	// Digest identifies the server's definition; another definition may well
	// speak another era.
	Digest string `json:"digest"`
	// Name is the era, in the words of the room that probes.
	Name string `json:"name"`
	// Protocol is the version that was agreed on.
	Protocol string    `json:"protocol,omitempty"`
	Learned  time.Time `json:"learned"`
}

// Eras remembers the era per server digest. What a server speaks does not
// depend on who asks, so all principals share what was learned.
type Eras struct{ store Records }

// NewEras returns the eras kept in store.
func NewEras(store Records) *Eras { return &Eras{store} }

// Remember keeps the era; a zero Learned means now.
func (e *Eras) Remember(ctx context.Context, era Era) error {
	if era.Learned.IsZero() {
		era.Learned = now()
	}
	return putJSON(ctx, e.store, LocalKey(KindEra, era.Digest), era)
}

// Recall returns the era, or [ErrNotFound], also when what was kept is
// unreadable: it is only a shortcut.
func (e *Eras) Recall(ctx context.Context, digest string) (Era, error) {
	era, err := getJSON[Era](ctx, e.store, LocalKey(KindEra, digest))
	if errors.Is(err, ErrCorrupt) {
		return Era{}, ErrNotFound
	}
	return era, err
}

// Forget makes the next connection probe again.
func (e *Eras) Forget(ctx context.Context, digest string) error {
	return forget(ctx, e.store, LocalKey(KindEra, digest))
}
