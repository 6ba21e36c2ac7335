package vault

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// Approval says that a person has looked at one exact definition of a server
// and agreed to start it.
type Approval struct {
	// Digest identifies the definition; any change to it is another digest.
	Digest string `json:"digest"`
	// Server and Origin (a file) tell a person later what this was.
	Server string    `json:"server"`
	Origin string    `json:"origin,omitempty"`
	At     time.Time `json:"at"`
	// Fields is the definition as it was shown, values of secrets masked, so that a
	// later change can be shown against it.
	Fields []string `json:"fields,omitempty"`
}

// Approvals remembers which definitions a principal has approved.
type Approvals struct {
	store     Records
	principal string
}

// NewApprovals returns the approvals of principal, [Local] when empty.
func NewApprovals(store Records, principal string) *Approvals {
	return &Approvals{store: store, principal: orLocal(principal)}
}

// Approve remembers the approval; a zero At means now.
func (a *Approvals) Approve(ctx context.Context, approval Approval) error {
	if approval.At.IsZero() {
		approval.At = now()
	}
	return putJSON(ctx, a.store, a.key(approval.Digest), approval)
}

// Approved says whether the definition was approved. An unreadable approval is
// none: the person is asked again.
func (a *Approvals) Approved(ctx context.Context, digest string) (bool, error) {
	got, err := getJSON[Approval](ctx, a.store, a.key(digest))
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrCorrupt) {
		return false, nil
	}
	return err == nil && got.Digest == digest, err
}

// List returns all approvals, ordered by digest.
func (a *Approvals) List(ctx context.Context) ([]Approval, error) {
	return listJSON[Approval](ctx, a.store, KindApproval, a.principal)
}

// Revoke removes an approval; it is not an error if there was none.
func (a *Approvals) Revoke(ctx context.Context, digest string) error {
	return forget(ctx, a.store, a.key(digest))
}

func (a *Approvals) key(digest string) Key { return Key{KindApproval, a.principal, digest} }

func orLocal(principal string) string {
	if principal == "" {
		return Local
	}
	return principal
}

func putJSON(ctx context.Context, s Records, key Key, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return overwrite(ctx, s, key, data)
}

// getJSON reads one record; bytes that are no JSON of the right shape are a
// [*CorruptError].
func getJSON[T any](ctx context.Context, s Records, key Key) (v T, err error) {
	rec, err := s.Get(ctx, key)
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(rec.Data, &v); err != nil {
		return v, &CorruptError{Key: key, Err: err}
	}
	return v, nil
}

// listJSON reads all records of a kind and leaves out those it cannot read: one
// bad entry must not hide the others, and what is listed here is either a cache
// or asked for again when missing.
func listJSON[T any](ctx context.Context, s Records, kind, principal string) ([]T, error) {
	recs, err := s.List(ctx, kind, principal)
	if err != nil && !errors.Is(err, ErrCorrupt) {
		return nil, err
	}
	all := make([]T, 0, len(recs))
	for _, rec := range recs {
		var v T
		if json.Unmarshal(rec.Data, &v) == nil {
			all = append(all, v)
		}
	}
	return all, nil
}
