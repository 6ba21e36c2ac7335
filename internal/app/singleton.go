package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/vault"
)

const (
	// singletonLease is for how long a store may be away before another host may
	// start a singleton.
	singletonLease = 30 * time.Second
	// singletonWait is how long a host waits for another one that is about to end.
	singletonWait = 3 * time.Second
)

// singleton takes the lease of a server that must run only once on all hosts that
// share the store, and keeps it until release. A host that loses it, because its
// store was away for too long, stops the server.
func (h *App) singleton(ctx context.Context, srv config.Server) (release func(), err error) {
	lease, err := h.singletonLease(ctx, "singleton/"+srv.Name)
	if held, ok := errors.AsType[*vault.HeldError](err); ok {
		return nil, h.runsElsewhere(ctx, srv.Name, held)
	}
	if err != nil {
		return nil, fmt.Errorf("it is a singleton, and whether it runs elsewhere cannot be known now: %w", err)
	}
	h.noteHome(ctx, srv.Name, lease)
	return vault.Keep(h.store, lease, singletonLease, func(err error) {
		if h.log != nil {
			h.log.Error("a server that may run only once is stopped: another usher may start it now", "server", srv.Name, "error", err)
		}
		_ = h.hosted.Stop(srv.Name) // fails for a server that is gone anyway
	}), nil
}

// singletonLease waits for the lease a moment, and for as long as it takes to be sure
// of it if the holder seems to be dead.
func (h *App) singletonLease(ctx context.Context, name string) (vault.Lease, error) {
	wait, stop := context.WithTimeout(ctx, singletonWait)
	defer stop()
	lease, err := vault.Acquire(wait, h.store, name, singletonLease)
	held, ok := errors.AsType[*vault.HeldError](err)
	if !ok || !held.Overdue {
		return lease, err
	}
	wait, stop = context.WithTimeout(ctx, held.Remaining+singletonWait)
	defer stop()
	return vault.Acquire(wait, h.store, name, singletonLease)
}

// singletonHome is where a singleton runs, for those who are asked for it elsewhere.
type singletonHome struct {
	Holder string `json:"holder"` // of the lease: a note of another holder is out of date
	Peer   string `json:"peer"`
}

func homeKey(server string) vault.Key {
	return vault.LocalKey(vault.KindGateway, "singleton/"+server)
}

// noteHome writes down where other ushers reach the one that has the lease. It only
// makes an error say more, so a failure is no reason not to start the server.
func (h *App) noteHome(ctx context.Context, server string, lease vault.Lease) {
	peer := h.peer.Load()
	if peer == nil {
		return
	}
	note, err := json.Marshal(singletonHome{lease.Holder, *peer})
	if err == nil {
		_, err = vault.Update(ctx, h.store, homeKey(server), func([]byte) ([]byte, error) { return note, nil })
	}
	if err != nil && h.log != nil {
		h.log.Warn("other ushers cannot be told where a server runs that may run only once", "server", server, "error", err)
	}
}

// runsElsewhere says where a singleton runs, and what to do about it.
func (h *App) runsElsewhere(ctx context.Context, server string, held *vault.HeldError) error {
	process := held.Holder
	if i := strings.LastIndexByte(process, '/'); i > 0 {
		process = process[:i] // the rest tells the leases of one process apart
	}
	where, next := "in the usher "+process, "call it there"
	// The time to wait for the lease is over by now.
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), singletonWait)
	defer stop()
	var home singletonHome
	rec, err := h.store.Get(ctx, homeKey(server))
	if err == nil && json.Unmarshal(rec.Data, &home) == nil && home.Holder == held.Holder {
		where = fmt.Sprintf("in the usher at %s (%s)", home.Peer, process)
		next = fmt.Sprintf("call it at %s/servers/%s/mcp", strings.TrimRight(home.Peer, "/"), server)
	}
	return fmt.Errorf("it is a singleton and runs %s: %s, or end it there with `usher stop %s` and call again; if that usher is dead, another one takes over within %v",
		where, next, server, singletonLease)
}
