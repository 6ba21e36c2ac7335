// Package singleton lets one process at a time run a server that must run only once on
// all machines that share a store.
//
//	leases := singleton.New(store, &singleton.Options{Stop: h.Stop})
//	release, err := leases.Take(ctx, srv)
//
// The error of Take names the process that runs the server. A holder that cannot reach
// the store for longer than the lease stops the server, because another process may
// start it then.
package singleton

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/vault"
)

const (
	// leaseTime is how long the store may be away before another process may start a
	// singleton.
	leaseTime = 30 * time.Second
	// leaseWait is how long a process waits for another one that shuts down.
	leaseWait = 3 * time.Second
)

// Options steer Leases.
type Options struct {
	// Stop stops a server whose lease is lost.
	Stop func(server string) error
	// Log receives warnings. Nil discards them.
	Log *slog.Logger
}

// Leases are the leases of one process on the servers that must run only once.
type Leases struct {
	store vault.Store
	stop  func(server string) error
	log   *slog.Logger
	peer  atomic.Pointer[string]
}

// New returns the leases that a process takes in a store.
func New(store vault.Store, opt *Options) *Leases {
	return &Leases{store: store, stop: opt.Stop, log: cmp.Or(opt.Log, slog.New(slog.DiscardHandler))}
}

// SetPeer sets the address at which other processes reach this one; their errors name
// it.
func (l *Leases) SetPeer(address string) { l.peer.Store(&address) }

// Take takes the lease of a server and keeps it until release.
func (l *Leases) Take(ctx context.Context, srv config.Server) (release func(), err error) {
	lease, err := l.acquire(ctx, "singleton/"+srv.Name)
	if held, ok := errors.AsType[*vault.HeldError](err); ok {
		return nil, l.runsElsewhere(ctx, srv.Name, held)
	}
	if err != nil {
		return nil, fmt.Errorf("it is a singleton, and whether it runs elsewhere cannot be known now: %w", err)
	}
	l.noteHolder(ctx, srv.Name, lease)
	return vault.Keep(l.store, lease, leaseTime, func(err error) {
		l.log.Error("a server that may run only once is stopped: another usher may start it now", "server", srv.Name, "error", err)
		_ = l.stop(srv.Name) // fails only for a server that was removed
	}), nil
}

// acquire waits a moment for the lease, and until it expires if the holder seems to be
// dead.
func (l *Leases) acquire(ctx context.Context, name string) (vault.Lease, error) {
	wait, stop := context.WithTimeout(ctx, leaseWait)
	defer stop()
	lease, err := vault.Acquire(wait, l.store, name, leaseTime)
	held, ok := errors.AsType[*vault.HeldError](err)
	if !ok || !held.Overdue {
		return lease, err
	}
	wait, stop = context.WithTimeout(ctx, held.Remaining+leaseWait)
	defer stop()
	return vault.Acquire(wait, l.store, name, leaseTime)
}

// holderNote says where a singleton runs, for the errors of other processes.
type holderNote struct {
	Holder string `json:"holder"` // of the lease: a note of another holder is out of date
	Peer   string `json:"peer"`
}

func noteKey(server string) vault.Key {
	return vault.LocalKey(vault.KindGateway, "singleton/"+server)
}

// noteHolder stores the address of this process for the errors of other ones. A failure
// does not keep the server from starting.
func (l *Leases) noteHolder(ctx context.Context, server string, lease vault.Lease) {
	peer := l.peer.Load()
	if peer == nil {
		return
	}
	note, err := json.Marshal(holderNote{lease.Holder, *peer})
	if err == nil {
		_, err = vault.Update(ctx, l.store, noteKey(server), func([]byte) ([]byte, error) { return note, nil })
	}
	if err != nil {
		l.log.Warn("cannot tell other replicas where a single-instance server runs", "server", server, "error", err)
	}
}

// runsElsewhere says where a singleton runs, and what to do about it.
func (l *Leases) runsElsewhere(ctx context.Context, server string, held *vault.HeldError) error {
	process := held.Holder
	if i := strings.LastIndexByte(process, '/'); i > 0 {
		process = process[:i] // the rest tells the leases of one process apart
	}
	where, next := "in the usher "+process, "call it there"
	// The time to wait for the lease is over by now.
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), leaseWait)
	defer stop()
	var home holderNote
	rec, err := l.store.Get(ctx, noteKey(server))
	if err == nil && json.Unmarshal(rec.Data, &home) == nil && home.Holder == held.Holder {
		where = fmt.Sprintf("in the usher at %s (%s)", home.Peer, process)
		next = fmt.Sprintf("call it at %s/servers/%s/mcp", strings.TrimRight(home.Peer, "/"), server)
	}
	return fmt.Errorf("it is a singleton and runs %s: %s, or stop it there and call again; if that process is dead, another one takes over within %v",
		where, next, leaseTime)
}
