package vault

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/usher-mcp/usher/event"
)

// Local is the principal of a single user's store.
const Local = "local"

// MaxData is the largest record a store takes.
const MaxData = 16 << 20

// Longest parts of a key and longest lease name, in bytes. They keep a change
// notice within what a database sends in one notification.
const (
	maxKind      = 64
	maxPrincipal = 512
	maxName      = 1024
)

// Key names a record: what it is, whose it is, and which one. All three are
// required. Do not put secrets into a key: it is logged and broadcast.
type Key struct {
	Kind      string
	Principal string
	Name      string
}

// LocalKey is the key of a record of the principal [Local].
func LocalKey(kind, name string) Key { return Key{Kind: kind, Principal: Local, Name: name} }

// String returns kind/principal/name, for messages and lease names.
func (k Key) String() string { return k.Kind + "/" + k.Principal + "/" + k.Name }

// Validate refuses keys that not every store can hold, with [ErrInvalid].
func (k Key) Validate() error {
	if err := validText("kind", k.Kind, maxKind); err != nil {
		return err
	}
	if err := validText("principal", k.Principal, maxPrincipal); err != nil {
		return err
	}
	return validText("name", k.Name, maxName)
}

// ValidLeaseName refuses lease names that not every store can hold, with
// [ErrInvalid]. A key's String is always valid.
func ValidLeaseName(name string) error {
	return validText("lease name", name, maxKind+maxPrincipal+maxName+2)
}

func validText(what, s string, limit int) error {
	switch {
	case s == "":
		return fmt.Errorf("%w: empty %s", ErrInvalid, what)
	case len(s) > limit:
		return fmt.Errorf("%w: %s of %d bytes, at most %d", ErrInvalid, what, len(s), limit)
	case !utf8.ValidString(s):
		return fmt.Errorf("%w: %s %q is not UTF-8", ErrInvalid, what, s)
	case strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		return fmt.Errorf("%w: control character in %s %q", ErrInvalid, what, s)
	}
	return nil
}

// ValidData refuses data that is too large for a record, with [ErrInvalid].
func ValidData(data []byte) error {
	if len(data) > MaxData {
		return fmt.Errorf("%w: %d bytes of data, at most %d", ErrInvalid, len(data), MaxData)
	}
	return nil
}

// Record is one stored value. Data is the caller's own copy.
type Record struct {
	Key
	// Version is larger after every write of the record and is never used
	// again for the same key, not even after a deletion: a stale writer can
	// never match by accident.
	Version int64
	Data    []byte
	// Updated is when the record was written, by the store's clock, to the
	// millisecond.
	Updated time.Time
}

// Change is a hint that a record may be another one than before. Records are
// the truth: a reader that gets a Change, or is told that some were lost, reads again.
type Change struct {
	Key
	// Version is the new version, 0 when the record is gone.
	Version int64
}

// Records reads and writes versioned records. Every write is durable when the
// method returns nil, except of kinds that are [Expendable], and either whole or absent
// whatever happens meanwhile.
type Records interface {
	// Get returns the record, [ErrNotFound], or a [*CorruptError].
	Get(ctx context.Context, key Key) (Record, error)

	// Put writes data if the record's version is still ifVersion, where 0
	// means that it must be absent. Otherwise, also when it is gone, nothing
	// changes and the error is [ErrConflict].
	Put(ctx context.Context, key Key, data []byte, ifVersion int64) (Record, error)

	// PutFenced is Put for the holder of a lease: it also fails, with
	// [ErrFenced], once somebody else has taken the lease or it was released.
	// A lease that merely ran out and that nobody took still counts, because
	// refusing would lose what the holder alone has (a rotated token).
	PutFenced(ctx context.Context, key Key, data []byte, ifVersion int64, lease Lease) (Record, error)

	// Delete removes the record if its version is still ifVersion, else
	// [ErrConflict]; [ErrNotFound] when there is none.
	Delete(ctx context.Context, key Key, ifVersion int64) error

	// Take removes the record whatever its version and returns it; of several
	// callers exactly one gets it, the others get [ErrNotFound].
	Take(ctx context.Context, key Key) (Record, error)

	// List returns the records of a kind, of one principal or, when principal
	// is empty, of all, ordered by principal and name. Damaged records do not
	// hide the others: List returns all it can read together with an error
	// that is [ErrCorrupt] and names the rest.
	List(ctx context.Context, kind, principal string) ([]Record, error)

	// Versions returns the versions of all records of a kind and a principal by
	// their names: what List says without what is in them. Damaged records have one
	// too.
	Versions(ctx context.Context, kind, principal string) (map[string]int64, error)

	// Watch subscribes to changes of records made from now on, in this process
	// or another one. ctx bounds only the subscribing; the caller closes the
	// subscription. Closing the store ends it too.
	Watch(ctx context.Context) (*event.Subscription[Change], error)
}

// Lease is the proof of having been given a name to work under. It is plain
// data: it stays valid when copied and is checked by the store, not by itself.
type Lease struct {
	Name   string
	Holder string
	// Epoch grows with every acquisition of the name.
	Epoch int64
	// Expires is when others may take the lease, by this process's steady clock and
	// counted from before the store was asked, so never later than others think.
	Expires time.Time
}

// Leases hands out names to one holder at a time. No clock is compared with one of
// another process: clocks differ and are set.
type Leases interface {
	// Lease acquires name for ttl, or fails with a [*HeldError] (which is
	// [ErrHeld]). It does not wait; see [Acquire] and [Hold]. A process that
	// holds the lease already is refused like any other.
	//
	// The lease of a holder that died is taken over once this process has itself
	// seen it unchanged, by its steady clock, for the time it was given: never
	// sooner, and however far in the future its end may lie.
	Lease(ctx context.Context, name string, ttl time.Duration) (Lease, error)

	// Renew gives the lease ttl from now, or fails with [ErrFenced] when
	// somebody else took it or it was released. Epoch and Holder stay, so
	// copies of the old value remain good for PutFenced.
	Renew(ctx context.Context, lease Lease, ttl time.Duration) (Lease, error)

	// Release lets others acquire the name at once. It fails with [ErrFenced]
	// when the lease was no longer ours, which changes nothing.
	Release(ctx context.Context, lease Lease) error
}

// Count is the value of one counter.
type Count struct {
	Key
	Value int64
}

// Counters keeps numbers that many writers change at once, such as what is
// left of a budget. Changing one sends no [Change].
type Counters interface {
	// Add changes the counter, which starts at 0, and returns its new value.
	// A sum beyond int64 is an error and changes nothing.
	Add(ctx context.Context, key Key, delta int64) (int64, error)

	// AddAll is Add for several counters, all or none, in one write: deltas have
	// what to add as Value, and no key twice. The new values are in the same order.
	AddAll(ctx context.Context, deltas ...Count) ([]int64, error)

	// Counts lists counters as List does records.
	Counts(ctx context.Context, kind, principal string) ([]Count, error)

	// Clear forgets the counters, all or none; it is no error if there are none.
	Clear(ctx context.Context, keys ...Key) error
}

// AuditEntry is one row of the audit log.
type AuditEntry struct {
	// Seq is given by the store and grows.
	Seq int64
	// At is when it happened; the store's clock fills in a zero value.
	At        time.Time
	Principal string
	// Action is what was done, such as "call", "login", "approve".
	Action string
	// Target is what it was done to, such as a server or a tool.
	Target string
	// Outcome is how it ended, such as "ok" or "denied".
	Outcome string
	// Detail is more about it, without secrets; JSON by custom.
	Detail []byte
}

// Normalized returns the entry as every store can hold it: whole milliseconds,
// valid UTF-8 without NUL (targets may be foreign names), and its own Detail.
func (e AuditEntry) Normalized() AuditEntry {
	if !e.At.IsZero() {
		e.At = e.At.UTC().Truncate(time.Millisecond)
	}
	for _, s := range []*string{&e.Principal, &e.Action, &e.Target, &e.Outcome} {
		*s = strings.ReplaceAll(strings.ToValidUTF8(*s, "\uFFFD"), "\x00", "\uFFFD")
	}
	e.Detail = append([]byte{}, e.Detail...)
	return e
}

// AuditQuery selects audit entries; the zero value selects the newest 100.
type AuditQuery struct {
	Principal string // empty: everybody's
	After     int64  // only entries with a larger Seq
	Limit     int    // at most this many, the newest ones; 0 means 100
	Oldest    bool   // the oldest ones instead, for reading page by page
}

// DefaultAuditLimit is how many entries an [AuditQuery] without a limit gets.
const DefaultAuditLimit = 100

// Audits is the audit log.
type Audits interface {
	// Append adds the entries in order, all or none. Callers batch: there is one
	// write per Append, not per entry. A power failure may cost those of the last
	// seconds, the end of the process costs none.
	Append(ctx context.Context, entries ...AuditEntry) error

	// Audit returns the selected entries, oldest first.
	Audit(ctx context.Context, q AuditQuery) ([]AuditEntry, error)

	// TrimAudit removes entries older than before and says how many.
	TrimAudit(ctx context.Context, before time.Time) (int64, error)
}

// Store is everything that is kept. All methods may be called from any
// goroutine; several processes may use one store at a time. A store that
// cannot be reached or written answers with [ErrUnavailable] and loses nothing.
type Store interface {
	Records
	Leases
	Counters
	Audits

	// Ready proves that a record of room bytes could be written durably now.
	// A caller that is about to spend something that cannot be had again, such as a
	// refresh token, asks first.
	Ready(ctx context.Context, room int) error

	// Close ends all subscriptions and frees the store. Later calls fail with
	// [ErrClosed].
	Close() error
}
