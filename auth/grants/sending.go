package grants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/vault"
)

const (
	// proofLimit is how old the proof that a request is the first may be when the
	// request leaves. It is far less than the lease lasts.
	proofLimit = refreshLease / 3
	// answerLimit is how long another process may need for the answer to a refresh
	// request and for storing it, if it is neither dead nor stopped.
	answerLimit = oauth.TokenTimeout + saveLimit + refreshLease
	// stoppedLimit is how long a call waits for a process that is stopped.
	stoppedLimit = 5 * time.Second
	// proofTries is how often a request is prepared again that could not be proven to
	// be the first.
	proofTries = 5
)

// errNotFirst: nothing was sent, because another process may have sent the refresh
// token, or the proof that none has took too long.
var errNotFirst = errors.New("it is not certain that no other process has sent the refresh token")

// sending is the note, of kind vault.KindSending, that a refresh token is about to be
// sent. It is written under the lease immediately before the request leaves. A process
// that is suspended from then on, and loses the lease, still keeps others from sending
// the same token: servers take that for theft and end the login.
type sending struct {
	Grant  int64  `json:"grant"`  // version of the grant whose refresh token it is
	Engine string `json:"engine"` // which engine sends it
	Sender sender `json:"sender"`

	version int64 // of the note
}

// sender is a process, as others on the same machine find it.
type sender struct {
	Machine string `json:"machine"` // changes with every start of the machine; "": not known
	PID     int    `json:"pid"`
	Start   uint64 `json:"start,omitempty"`
}

// senderState is what this process can tell about a sender.
type senderState int

const (
	senderUnknown senderState = iota // it runs, or is on another machine
	senderStopped
	senderGone
)

// inFlightError: another process may be waiting for the answer to the same request.
type inFlightError struct {
	sender  sender
	stopped bool
	wait    time.Duration // until it must have ended
}

func (e *inFlightError) Error() string {
	if e.stopped {
		return fmt.Sprintf("process %d on this machine is stopped in the middle of a refresh; continue or end it", e.sender.PID)
	}
	return "another process is waiting for the answer to a refresh request"
}

func sendingKey(a Account) vault.Key { return a.Key(vault.KindSending) }

// sendLog keeps two processes from sending the same refresh token.
type sendLog struct {
	*Env

	self    func() sender
	stateOf func(sender) senderState
	seen    vault.Sightings // of the notes of other processes
}

// load reads the note of an account; nil if there is none or it is damaged.
func (sl *sendLog) load(ctx context.Context, a Account) (*sending, error) {
	rec, err := sl.Store.Get(ctx, sendingKey(a))
	switch {
	case errors.Is(err, vault.ErrNotFound), errors.Is(err, vault.ErrCorrupt):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read whether a refresh of %s is in flight: %w", a, err)
	}
	s := &sending{version: rec.Version}
	if json.Unmarshal(rec.Data, s) != nil {
		s.Grant = 0 // nonsense is about no grant
	}
	return s, nil
}

// mayBeFirst returns an error while another process may have sent the refresh token
// of g and may still store the answer.
func (sl *sendLog) mayBeFirst(ctx context.Context, a Account, g *Grant) error {
	if g == nil {
		return nil
	}
	s, err := sl.load(ctx, a)
	if err != nil || s == nil || s.Grant != g.Version || s.Engine == sl.seed {
		return err
	}
	name := sendingKey(a).String()
	switch sl.stateOf(s.Sender) {
	case senderGone:
		sl.seen.Forget(name)
		return nil
	case senderStopped:
		return &inFlightError{sender: s.Sender, stopped: true}
	}
	wait := sl.seen.Wait(name, vault.LeaseMark{Holder: s.Engine, Epoch: s.version}, answerLimit, sl.Clock())
	if wait > 0 {
		return &inFlightError{sender: s.Sender, wait: wait}
	}
	return nil
}

// proveFirst makes sure, when the connection is there and only the request is still to
// be written, that no other process has sent the refresh token of g: the lease is held,
// the grant is unchanged, and it took so little time to find out that both still hold.
// Nobody else sends the token from then on while this process may do so.
func (sl *sendLog) proveFirst(ctx context.Context, a Account, g *Grant, l vault.Lease) error {
	ctx, cancel := context.WithTimeout(ctx, refreshLease)
	defer cancel()
	start := sl.Clock()
	if _, err := sl.Store.Renew(ctx, l, refreshLease); err != nil {
		return fmt.Errorf("%w: %w", errNotFirst, err)
	}
	// Another process may have come and gone since mayBeFirst.
	if err := sl.mayBeFirst(ctx, a, g); err != nil {
		return fmt.Errorf("%w: %w", errNotFirst, err)
	}
	if err := sl.note(ctx, a, g, l); err != nil {
		return fmt.Errorf("%w: %w", errNotFirst, err)
	}
	rec, err := sl.Store.Get(ctx, a.Key(vault.KindGrant))
	if err != nil {
		return fmt.Errorf("%w: %w", errNotFirst, err)
	}
	if rec.Version != g.Version {
		return fmt.Errorf("%w: the grant was changed", errNotFirst)
	}
	if took := sl.Clock().AtMost(start); took > proofLimit {
		return fmt.Errorf("%w: to make certain took %v", errNotFirst, took)
	}
	return nil
}

// note writes the note, in place of an older one.
func (sl *sendLog) note(ctx context.Context, a Account, g *Grant, l vault.Lease) error {
	old, err := sl.load(ctx, a)
	if err != nil {
		return err
	}
	var version int64
	if old != nil {
		version = old.version
	}
	data, err := json.Marshal(sending{Grant: g.Version, Engine: sl.seed, Sender: sl.self()})
	if err == nil {
		_, err = sl.Store.PutFenced(ctx, sendingKey(a), data, version, l)
	}
	return err
}

// clear removes the note of this engine: its request has ended, and nothing
// came of it that could be stored.
func (sl *sendLog) clear(ctx context.Context, a Account) {
	s, err := sl.load(ctx, a)
	if err == nil && s != nil && s.Engine == sl.seed {
		err = sl.Store.Delete(ctx, sendingKey(a), s.version)
	}
	if err != nil && !errors.Is(err, vault.ErrConflict) && !errors.Is(err, vault.ErrNotFound) {
		sl.Log.Warn("other processes will wait for a refresh that has ended", "account", a.String(), "error", err)
	}
}

// keepLate stores tokens that arrived after the lease was lost, if the note shows that
// nobody else has sent the refresh token meanwhile: then nobody has newer ones. The
// note is written again first, so that nobody can begin to.
func (sl *sendLog) keepLate(ctx context.Context, a Account, next *Grant, version int64) error {
	s, err := sl.load(ctx, a)
	switch {
	case err != nil:
		return err
	case s == nil || s.Engine != sl.seed || s.Grant != version || version == 0:
		return vault.ErrFenced
	}
	note, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if _, err := sl.Store.Put(ctx, sendingKey(a), note, s.version); err != nil {
		return err
	}
	data, err := next.Encode()
	if err != nil {
		return err
	}
	rec, err := sl.Store.Put(ctx, a.Key(vault.KindGrant), data, version)
	if err == nil {
		next.Version = rec.Version
	}
	return err
}
