package vault

import (
	"errors"
	"fmt"
	"time"
)

// What callers branch on, with errors.Is.
var (
	ErrNotFound = errors.New("no such record")
	ErrConflict = errors.New("the record was changed by somebody else")
	ErrFenced   = errors.New("the lease is no longer ours")
	ErrHeld     = errors.New("the lease is held by somebody else")
	ErrInvalid  = errors.New("invalid key or value")
	ErrClosed   = errors.New("the store is closed")

	// ErrNewer means that a newer usher wrote the store; this one refuses to
	// touch what it does not understand.
	ErrNewer = errors.New("the store was written by a newer usher")

	// ErrUnavailable means that the store cannot be reached or written at the
	// moment: database down, disk full, read-only or too busy. What was stored
	// is still stored; trying again later is right.
	ErrUnavailable = errors.New("the store is unavailable")

	// ErrExposed means that others than the owner may read or change the
	// store's files.
	ErrExposed = errors.New("others can access the store")

	// ErrCorrupt is what every [*CorruptError] is.
	ErrCorrupt = errors.New("damaged")
)

// Why a sealed record does not open.
var (
	// ErrNoKey means that the master key is not available now: the keychain does
	// not answer, the file or variable does not exist, no person can be asked. It
	// is [ErrUnavailable] too: nothing is lost, and a retry works once the key is
	// there.
	ErrNoKey = errors.New("cannot load the encryption key")

	// ErrWrongKey means that there is a master key but not the one the store
	// was sealed with. It is [ErrUnavailable] too.
	ErrWrongKey = errors.New("the key is not the one the store was encrypted with")

	// ErrTampered means that the bytes of a record are not what was written: changed,
	// cut, moved from another record or version, or never sealed at all.
	ErrTampered = errors.New("the stored bytes are not what usher wrote")

	// ErrUnknownKey means that a record was sealed with a data key that the
	// store no longer has.
	ErrUnknownKey = errors.New("it was encrypted with a key this store does not have")
)

// HeldError says how long a lease is still held. It is [ErrHeld].
type HeldError struct {
	Name   string
	Holder string
	// Remaining is how long this process must still see the lease unchanged before
	// it may take it over.
	Remaining time.Duration
	// Overdue: by the wall clock the holder should have renewed it. It is probably
	// dead, but clocks are set, so this is a hint only.
	Overdue bool
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("lease %s: %v (%s, for at most %v more)", e.Name, ErrHeld, e.Holder, e.Remaining)
}

// Is makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// CorruptError says that a record, or the whole store when Key is zero, cannot
// be trusted. It is [ErrCorrupt].
type CorruptError struct {
	// Key is the damaged record; zero when the store itself is damaged.
	Key Key
	// Path is the store's file, if it has one.
	Path string
	// Copy is where the damaged bytes were kept: a file, or empty when they
	// were set aside inside the store or stay where they are.
	Copy string
	Err  error
}

func (e *CorruptError) Error() string {
	if e.Key != (Key{}) {
		return fmt.Sprintf("record %s is damaged: %v (the other records are not affected)", e.Key, e.Err)
	}
	kept := ""
	if e.Copy != "" {
		kept = "; a copy was kept at " + e.Copy
	}
	return fmt.Sprintf("store %s is damaged: %v%s", e.Path, e.Err, kept)
}

// Hint is the next step.
func (e *CorruptError) Hint() string {
	if e.Key != (Key{}) {
		return "check the store"
	}
	return "repair the store"
}

// Is makes errors.Is(err, ErrCorrupt) true.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// Unwrap returns what was found.
func (e *CorruptError) Unwrap() error { return e.Err }
