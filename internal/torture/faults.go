package torture

import (
	"errors"

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
	w, err := newWorld(t.ctx, t.dir, &fake.AuthOptions{}, false)
	if err != nil {
		return err
	}
	defer w.close()
	done := 0
	for ; done < t.goal(12, 10_000) && t.on(); done++ {
		a := account(done) // a fresh one: failures make the next try wait
		if err := w.login(t.ctx, a); err != nil {
			return err
		}
		fault := refreshFaults[t.draw(len(refreshFaults))]
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
			t.breaks("%s: the login is %s, %v", fault, s.State, errors.Join(err, t.ctx.Err()))
			t.count("logins deleted", 1)
		}
		if _, err := w.e.Logout(t.ctx, a); err != nil {
			return err
		}
	}
	t.count("failed refreshes", done)
	t.count("kinds of failure", len(refreshFaults))
	t.count("logins deleted", 0)
	return nil
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
