package logins

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/vault"
)

// pendingLogins are the logins that agents began in this process: which ones are
// followed, and why others failed. The zero value is ready.
type pendingLogins struct {
	mu       sync.Mutex // guards what follows
	followed map[string]bool
	failures []loginFailure // the oldest first
	rounds   map[string]*loginRound
}

// loginFailure is why the last login of an account failed.
type loginFailure struct {
	account auth.Account
	reason  string
	logged  time.Time
}

// logAgain is how long the same failure of an account is not logged again.
const logAgain = time.Minute

// follow reports whether the login with this state is followed from now on; false:
// it is already.
func (b *pendingLogins) follow(state string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.followed[state] {
		return false
	}
	if b.followed == nil {
		b.followed = map[string]bool{}
	}
	b.followed[state] = true
	return true
}

func (b *pendingLogins) leave(state string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.followed, state)
}

// fail remembers a failure, and reports whether it is worth a line in the log.
func (b *pendingLogins) fail(a auth.Account, reason string) (news bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := loginFailure{account: a, reason: reason, logged: time.Now()}
	if i := b.find(a); i >= 0 {
		old := b.failures[i]
		if old.reason == reason && time.Since(old.logged) < logAgain {
			return false
		}
		b.failures = slices.Delete(b.failures, i, i+1)
	}
	b.makeRoom(a.Principal)
	b.failures = append(b.failures, now)
	return true
}

// makeRoom forgets the oldest failure of a principal that has too many, or of all.
// It needs mu.
func (b *pendingLogins) makeRoom(principal string) {
	own := 0
	for i := range b.failures {
		if b.failures[i].account.Principal == principal {
			own++
		}
	}
	if own >= limit.LoginFailures {
		i := slices.IndexFunc(b.failures, func(f loginFailure) bool { return f.account.Principal == principal })
		b.failures = slices.Delete(b.failures, i, i+1)
	}
	if len(b.failures) >= limit.LoginFailuresTotal {
		b.failures = slices.Delete(b.failures, 0, 1)
	}
}

func (b *pendingLogins) find(a auth.Account) int {
	return slices.IndexFunc(b.failures, func(f loginFailure) bool { return f.account == a })
}

// clear forgets the failure of an account.
func (b *pendingLogins) clear(a auth.Account) {
	a.Principal = cmp.Or(a.Principal, vault.Local)
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := b.find(a); i >= 0 {
		b.failures = slices.Delete(b.failures, i, i+1)
	}
}

// failuresOf returns the failures of a principal.
func (b *pendingLogins) failuresOf(principal string) []loginFailure {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []loginFailure
	for _, f := range b.failures {
		if f.account.Principal == cmp.Or(principal, vault.Local) {
			out = append(out, f)
		}
	}
	return out
}

// failed remembers why a login failed, for status, and logs it, unless the caller
// left.
func (l *AgentLogins) failed(ctx context.Context, a auth.Account, err error) {
	if !errors.Is(ctx.Err(), context.Canceled) {
		l.failedBecause(a, failureReason(err))
	}
}

func (l *AgentLogins) failedBecause(a auth.Account, reason string) {
	a.Principal = cmp.Or(a.Principal, vault.Local)
	if l.m.pending.fail(a, reason) {
		l.m.log.Warn("login failed", "server", a.String(), "principal", a.Principal, "reason", reason)
	}
}

// maxReason is the length of a reason.
const maxReason = 300

// failureReason is why a login failed, for agents and the log: without commands, and
// without the account, which stands beside it.
func failureReason(err error) string {
	var denied *auth.DeniedError
	switch {
	case errors.As(err, &denied):
		text := "the authorization server answered " + denied.Code
		if denied.Words != "" {
			text += ": " + denied.Words
		}
		return cutReason(text)
	case errors.Is(err, auth.ErrExpired):
		return "nobody finished it in time"
	}
	return cutReason(err.Error())
}

func cutReason(text string) string {
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "…"
	}
	return text
}
