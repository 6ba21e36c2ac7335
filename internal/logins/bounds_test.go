package logins

import (
	"context"
	"fmt"
	"testing"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/internal/limit"
)

func TestLoginFailuresAreBounded(t *testing.T) {
	var b pendingLogins
	fail := func(principal string, n int) {
		for i := range n {
			b.fail(auth.Account{Principal: principal, Server: "s", Label: fmt.Sprint(i)}, "no")
		}
	}
	fail("alice", 1)
	fail("mallory", 3*limit.LoginFailures)
	if got := b.failuresOf("mallory"); len(got) != limit.LoginFailures || got[len(got)-1].account.Label != fmt.Sprint(3*limit.LoginFailures-1) {
		t.Errorf("%d of one principal", len(got))
	}
	if len(b.failuresOf("alice")) != 1 {
		t.Error("a principal made another's failure go")
	}
	for i := range limit.LoginFailuresTotal/limit.LoginFailures + 2 {
		fail(fmt.Sprint("p", i), limit.LoginFailures)
	}
	if len(b.failures) != limit.LoginFailuresTotal {
		t.Errorf("%d in all", len(b.failures))
	}
}

func TestLoginRoundsAreBounded(t *testing.T) {
	var b pendingLogins
	stopped := 0
	stop := context.CancelFunc(func() { stopped++ })
	var first *loginRound
	for i := range limit.LoginRounds {
		r, err := b.startRound(fmt.Sprint(i), stop)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = r
		}
	}
	if _, err := b.startRound("more", stop); err != errTooManyRounds {
		t.Errorf("one more: %v", err)
	}
	if _, err := b.startRound("0", stop); err != errRoundRuns {
		t.Errorf("twice at once: %v", err)
	}
	close(first.ready)
	if _, err := b.startRound("0", stop); err != nil || stopped != 1 {
		t.Errorf("after it was prepared: %v, %d stopped", err, stopped)
	}
	b.endRound("0", first)
	if len(b.rounds) != limit.LoginRounds {
		t.Errorf("%d rounds: one ended another", len(b.rounds))
	}
}

func TestAccountListsAreBounded(t *testing.T) {
	var a Accounts
	for i := range limit.AccountLists + 10 {
		a.mu.Lock()
		a.list(fmt.Sprint("p", i))
		a.mu.Unlock()
	}
	if n := len(a.by); n > limit.AccountLists {
		t.Errorf("lists of %d principals are kept", n)
	}
}
