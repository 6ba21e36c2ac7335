package torture

import (
	"fmt"
	"path/filepath"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/internal/fake"
)

// refreshFaults are what a token endpoint does instead of answering.
var refreshFaults = []string{
	"token-status=500", "token-status=502", "token-status=503", "token-status=429", "token-status=408", "token-status=404",
	"token-status=301", "token-error=server_error", "token-error=temporarily_unavailable", "token-error=invalid_request",
	"token-redirect=http://127.0.0.1:9/elsewhere", "drop-before",
}

// faults lets renewals fail in every way that is not the end of the login: the login
// must be there afterwards, with all that renews it.
func faults(t *trial) error {
	worlds := make([]*world, t.goal(1, 4)) // much of it is waiting for the disk
	for i := range worlds {
		w, err := newWorld(t.ctx, filepath.Join(t.dir, fmt.Sprint(i)), &fake.AuthOptions{}, false)
		if err != nil {
			return err
		}
		defer w.close()
		worlds[i] = w
	}
	first := t.draw(len(refreshFaults))
	done := t.spread(len(worlds), t.goal(12, 10_000), func(lane, i int) {
		fault := refreshFaults[(first+i)%len(refreshFaults)]
		if err := t.fault(worlds[lane], account(i), fault); err != nil && t.ctx.Err() == nil {
			t.breaks("%s: %v", fault, err)
		}
	})
	t.count("failed refreshes", done)
	t.count("kinds of failure", len(refreshFaults))
	t.count("logins deleted", 0)
	return nil
}

// fault lets the renewal of an account fail. The account is a fresh one: failures make
// the next try wait.
func (t *trial) fault(w *world, a auth.Account, fault string) error {
	if err := w.login(t.ctx, a); err != nil {
		return err
	}
	w.as.Expire()
	w.as.Set(fault + ";on=refresh_token")
	c := newCaller(w.store, w.url)
	if err := c.call(t.ctx, a); err == nil {
		t.breaks("%s: the call worked", fault)
	}
	c.close()
	w.as.Clear(name(fault))
	s, err := w.e.Status(t.ctx, a)
	if t.ctx.Err() == nil && (err != nil || s.State == auth.StateNone || s.Generation != 1 || !s.CanRefresh) {
		t.breaks("%s: the login is %s, %v", fault, s.State, err)
		t.count("logins deleted", 1)
	}
	_, err = w.e.Logout(t.ctx, a)
	return err
}

// name is the name of a switch.
func name(text string) string {
	for i, c := range text {
		if c == '=' || c == ';' {
			return text[:i]
		}
	}
	return text
}
