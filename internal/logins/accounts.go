package logins

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/vault"
)

// Accounts knows the named accounts of each principal: those with a login in the
// store, and those with a pending one. It is the policy.Accounts of a gate.
type Accounts struct {
	m *Manager

	mu sync.Mutex // guards what follows
	by map[string]*accountList
}

// accountList is what the store had for one principal.
type accountList struct {
	read     time.Time
	reading  bool
	byServer map[string][]string
}

const (
	// accountsFresh is how long a list is used without reading it again.
	accountsFresh = 5 * time.Second
	// accountsRetry is how long a label that was not found stays unknown without
	// another look at the store.
	accountsRetry = time.Second
)

// Labels returns the named accounts of a principal at a server. It never waits for
// the store: a list that is not fresh is read in the background.
func (a *Accounts) Labels(principal, server string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.list(principal)
	a.freshen(l, principal)
	return l.byServer[server]
}

// freshen reads a list that is not fresh in the background. It needs mu.
func (a *Accounts) freshen(l *accountList, principal string) {
	if time.Since(l.read) > accountsFresh && !l.reading && a.m.life.Err() == nil {
		l.reading = true
		a.m.background.Go(func() { a.refresh(a.m.life, principal) })
	}
}

// Has reports whether there is such an account. A label that is not in the list has
// the store read, at most once a second for each principal.
func (a *Accounts) Has(ctx context.Context, principal, server, label string) bool {
	a.mu.Lock()
	l := a.list(principal)
	found, stale := slices.Contains(l.byServer[server], label), time.Since(l.read) > accountsRetry
	switch {
	case found:
		a.freshen(l, principal)
	case stale:
		l.read = time.Now() // others do not read as well
	}
	a.mu.Unlock()
	if found || !stale {
		return found
	}
	a.refresh(ctx, principal)
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Contains(a.list(principal).byServer[server], label)
}

// Expire has the list of a principal read again when it is next used.
func (a *Accounts) Expire(principal string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list(principal).read = time.Time{}
}

// remove takes one account out of the list of its principal.
func (a *Accounts) remove(principal, server, label string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.list(principal)
	l.read = time.Time{}
	if labels := l.byServer[server]; slices.Contains(labels, label) {
		l.byServer = maps.Clone(l.byServer)
		l.byServer[server] = slices.DeleteFunc(slices.Clone(labels), func(have string) bool { return have == label })
	}
}

// list returns the list of a principal. It needs mu.
func (a *Accounts) list(principal string) *accountList {
	principal = cmp.Or(principal, vault.Local)
	l := a.by[principal]
	if l != nil {
		return l
	}
	if a.by == nil || len(a.by) >= limit.AccountLists {
		a.by = map[string]*accountList{}
	}
	l = &accountList{}
	a.by[principal] = l
	return l
}

// refresh reads the list of a principal, and drops what is kept for accounts that
// are gone. While the store is away the last list stays.
func (a *Accounts) refresh(ctx context.Context, principal string) {
	principal = cmp.Or(principal, vault.Local)
	ctx, stop := context.WithTimeout(ctx, statusTimeout)
	defer stop()
	all, err := a.m.engine.Accounts(ctx, principal)
	byServer := map[string][]string{}
	for _, s := range all {
		if s.Account.Label != "" {
			byServer[s.Account.Server] = append(byServer[s.Account.Server], s.Account.Label)
		}
	}
	for _, labels := range byServer {
		slices.Sort(labels)
	}
	a.mu.Lock()
	l := a.list(principal)
	old := l.byServer
	l.reading, l.read = false, time.Now()
	if err == nil || len(all) > 0 {
		l.byServer = byServer
	}
	a.mu.Unlock()
	if err != nil {
		return
	}
	for server, labels := range old {
		for _, label := range labels {
			if !slices.Contains(byServer[server], label) {
				a.m.forget(host.Key{Principal: principal, Server: server, Account: label})
			}
		}
	}
}
