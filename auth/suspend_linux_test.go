package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/usher-mcp/usher/vault"
)

// A process is suspended (SIGSTOP) at every step of a refresh, longer than its lease
// lasts, while another one wants the same tokens; then it goes on. The authorization
// server ends the login when a refresh token is used twice. No login is lost.
func TestSuspendedAtEveryStep(t *testing.T) {
	steps := []string{
		"lease taken", "grant read", "store is ready", "not yet connected", "connected", "lease renewed", "sending written",
		"request not yet written", "request written", "answer read", "grant not yet written", "grant written",
	}
	var wg sync.WaitGroup
	for _, step := range steps {
		for n := 1; n <= 2; n++ { // some steps are taken twice
			path := filepath.Join(t.TempDir(), "may-hold-secrets", "usher.db")
			w := processWorld(t, path)
			c := startChild(t, path, w.prot.Resource, fmt.Sprint(childHalt, "=", haltAt(step, n)))
			wg.Go(func() {
				if at := suspended(t, w, c); at != step && n == 1 {
					t.Errorf("no process was suspended at: %s", step)
				}
			})
		}
	}
	wg.Wait()
}

// suspended suspends a child at its step and returns which it is, "" for none.
func suspended(t *testing.T, w *world, c *childProcess) string {
	if got := c.say(""); got != "ready" {
		t.Error(got)
		return ""
	}
	w.as.Expire()
	at, found := strings.CutPrefix(c.say("call"), "at ")
	if found {
		_ = c.cmd.Process.Signal(syscall.SIGSTOP)
		// Longer than the lease and the wait for it.
		ctx, cancel := context.WithTimeout(t.Context(), 2*refreshLease)
		err := w.call(ctx)
		cancel()
		if err != nil && !errors.Is(err, ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("suspended at %q: another process: %v", at, err)
		}
		_, _ = fmt.Fprintln(c.in, "go on")
		_ = c.cmd.Process.Signal(syscall.SIGCONT)
		if got := c.say(""); got != "ok" && !strings.Contains(got, "not possible right now") {
			t.Errorf("suspended at %q: it ends with: %s", at, got)
		}
	}
	for i := range 2 {
		if err := w.call(t.Context()); err != nil {
			t.Errorf("suspended at %q, then call %d: %v", at, i, err)
		}
		if got := c.say("call"); got != "ok" {
			t.Errorf("suspended at %q, then its call %d: %s", at, i, got)
		}
		w.as.Expire()
	}
	_ = c.in.Close()
	if err := c.cmd.Wait(); err != nil {
		t.Error(err)
	}
	if g, err := w.e.grants.Grants.Load(t.Context(), w.a); err != nil || g == nil || g.Ended != nil {
		t.Errorf("suspended at %q: the login is lost: %v", at, err)
	}
	return at
}

// The clock is set while one of four processes refreshes and the others wait: nobody
// takes the lease from it, and nobody waits for the clock.
func TestClockStepsWhileRefreshing(t *testing.T) {
	for _, step := range []string{"24h", "1h", "-1h"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "may-hold-secrets", "usher.db")
			w := processWorld(t, path)
			var children []*childProcess
			for range 4 {
				c := startChild(t, path, w.prot.Resource)
				if got := c.say(""); got != "ready" {
					t.Fatal(got)
				}
				children = append(children, c)
			}
			w.as.Expire()
			var wg sync.WaitGroup
			w.as.Intercept("token", func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
				w.as.Intercept("token", nil)
				// The clock of those who come now has been set; they meet the lease.
				for _, c := range children[1:] {
					if got := c.say(step); got != "ok" {
						t.Error(got)
					}
					wg.Go(func() {
						if got := c.say("call"); got != "ok" {
							t.Error(got)
						}
					})
				}
				waiting(t, w)
				next.ServeHTTP(rw, r)
			})
			if got := children[0].say("call"); got != "ok" {
				t.Error(got)
			}
			wg.Wait()
			if n := w.tokens("refresh_token"); n != 1 {
				t.Errorf("%d refreshes, want 1", n)
			}
			for _, c := range children {
				_ = c.in.Close()
				if err := c.cmd.Wait(); err != nil {
					t.Error(err)
				}
			}
			if g := w.grant(); g.Ended != nil || g.Generation != 2 {
				t.Errorf("generation %d, ended %v", g.Generation, g.Ended)
			}
		})
	}
}

// waiting gives other processes the time to ask for the refresh lease, and fails if it
// can be had.
func waiting(t *testing.T, w *world) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	l, err := vault.Acquire(ctx, w.store, "refresh/"+w.a.Key(vault.KindGrant).String(), refreshLease)
	if err == nil {
		t.Errorf("the lease of a process that refreshes was given to another one: %+v", l)
	}
}

// A process with a clock that is a day ahead is killed while it holds the lease.
func TestKilledWhileTheClockIsAhead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "may-hold-secrets", "usher.db")
	w := processWorld(t, path)
	w.as.Expire()
	c := startChild(t, path, w.prot.Resource)
	if got := c.say(""); got != "ready" {
		t.Fatal(got)
	}
	if got := c.say("24h"); got != "ok" {
		t.Fatal(got)
	}
	asked := make(chan struct{})
	w.as.Intercept("token", func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
		w.as.Intercept("token", nil)
		_, _ = io.Copy(io.Discard, r.Body) // or the end of the connection is not seen
		close(asked)
		<-r.Context().Done() // the server never acts on it
	})
	if _, err := fmt.Fprintln(c.in, "call"); err != nil {
		t.Fatal(err)
	}
	<-asked
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait() // it was killed
	start := time.Now()
	if err := w.call(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 3*refreshLease {
		t.Errorf("blocked for %v", took)
	}
	if _, err := w.store.Get(t.Context(), w.a.Key(vault.KindGrant)); err != nil {
		t.Error(err)
	}
}
