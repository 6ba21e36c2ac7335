package auth

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/usher-mcp/usher/auth/grants"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/test/need"
	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/sqlstore"
)

// The test binary, started again with these set, is a process that uses a login.
const (
	childJob   = "USHER_AUTH_CHILD"
	childStore = "USHER_AUTH_STORE"
	childURL   = "USHER_AUTH_URL"
	childHalt  = "USHER_AUTH_HALT" // the step of a refresh at which it halts, see haltAt; none if empty
)

// runChild makes one call for each line of standard input and says how it went.
func runChild(string) int {
	ctx := context.Background()
	clock := &steppedClock{}
	store, err := sqlstore.Open(ctx, os.Getenv(childStore), &sqlstore.Options{Clock: clock.now})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	in := bufio.NewScanner(os.Stdin)
	e := New(store, nil)
	if at := os.Getenv(childHalt); at != "" {
		h := &halting{Store: store, until: at, in: in, times: map[string]int{}}
		e = New(h, &Options{RoundTripper: &http.Transport{DialContext: h.dial}})
	}
	e.env.Clock = clock.now
	tr := &http.Transport{}
	c := &http.Client{Transport: e.Transport(tr)}
	srv := config.Server{Name: "srv", URL: os.Getenv(childURL), OAuth: &config.OAuth{}}
	fmt.Println("ready")
	for in.Scan() {
		if d, err := time.ParseDuration(in.Text()); err == nil {
			clock.step.Store(int64(d))
			fmt.Println("ok")
			continue
		}
		if err := callAs(ctx, e, c, Account{Server: "srv"}, srv); err != nil {
			fmt.Println(strings.ReplaceAll(err.Error(), "\n", " "))
			continue
		}
		fmt.Println("ok")
	}
	_ = e.Close()
	_ = store.Close()
	return 0
}

type childProcess struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func startChild(t *testing.T, path, address string, env ...string) *childProcess {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &childProcess{cmd: exec.CommandContext(t.Context(), exe)}
	c.cmd.Env = append(os.Environ(), childJob+"=call", childStore+"="+path, childURL+"="+address, "GORACE=atexit_sleep_ms=0")
	c.cmd.Env = append(c.cmd.Env, env...)
	c.cmd.Stderr = os.Stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewScanner(stdout)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// say sends a line and returns the answer.
func (c *childProcess) say(line string) string {
	if line != "" {
		if _, err := io.WriteString(c.in, line+"\n"); err != nil {
			return err.Error()
		}
	}
	if !c.out.Scan() {
		return "the child has gone"
	}
	return c.out.Text()
}

// Processes that share a store, with rotating refresh tokens whose reuse ends the
// grant, half of the rounds expired by the clock and half by a 401: one refresh each
// round, no call fails, nothing is lost.
func TestOneRefreshForManyProcesses(t *testing.T) {
	processes, rounds := 4, 10
	if need.Proof() {
		processes, rounds = 16, 50
	}
	t.Run("SQLite", func(t *testing.T) {
		oneRefreshForMany(t, filepath.Join(t.TempDir(), "may-hold-secrets", "usher.db") /* without its seal */, processes, rounds)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		oneRefreshForMany(t, need.Postgres(t), 4, rounds)
	})
}

// processWorld is a world of real connections and a store that processes share.
func processWorld(t *testing.T, path string) *world {
	t.Helper()
	as := fake.NewAuth(nil)
	_, stop, err := as.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	prot := &fake.Protected{Resource: fmt.Sprintf("http://%s/mcp", l.Addr())}
	hs := &http.Server{Handler: as.Protect(prot, okHandler)}
	go func() { _ = hs.Serve(l) }()
	t.Cleanup(func() { _ = hs.Close() })

	store, err := sqlstore.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, as: as, prot: prot, store: store, e: New(store, nil), a: Account{Server: "srv"}, srv: config.Server{Name: "srv", URL: prot.Resource, OAuth: &config.OAuth{}}}
	t.Cleanup(func() {
		_, _ = w.e.Logout(context.WithoutCancel(t.Context()), w.a) // a database outlives the test
		_ = w.e.Close()
		_ = store.Close()
	})
	w.client = &http.Client{Transport: w.e.Transport(&http.Transport{DisableKeepAlives: true})}
	w.login()
	return w
}

func oneRefreshForMany(t *testing.T, path string, processes, rounds int) {
	w := processWorld(t, path)
	as, prot := w.as, w.prot
	var children []*childProcess
	for range processes {
		children = append(children, startChild(t, path, prot.Resource))
	}
	for _, c := range children {
		if got := c.say(""); got != "ready" {
			t.Fatal(got)
		}
	}
	for round := range rounds {
		as.Expire()
		if round%2 == 0 {
			w.edit(func(g *grants.Grant) { g.Expires = time.Now().Add(-time.Second) })
		}
		var wg sync.WaitGroup
		for i, c := range children {
			wg.Go(func() {
				if got := c.say("call"); got != "ok" {
					t.Errorf("round %d, process %d: %s", round, i, got)
				}
			})
		}
		wg.Wait()
		if n := w.tokens("refresh_token"); n != round+1 {
			t.Fatalf("%d refreshes after round %d", n, round+1)
		}
	}
	for _, c := range children {
		_ = c.in.Close()
		if err := c.cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	if g := w.grant(); g.Ended != nil || g.Generation != int64(rounds+1) {
		t.Errorf("generation %d, ended %v", g.Generation, g.Ended)
	}
}

// A process that dies while it holds the refresh lease delays the others, and the
// login survives.
func TestKilledWhileRefreshing(t *testing.T) {
	w := newWorld(t, &fake.AuthOptions{Grace: time.Minute}, nil)
	w.login()
	w.as.Expire()
	// What a killed process leaves behind: a lease that nobody renews.
	if _, err := w.store.Lease(t.Context(), "refresh/"+w.a.Key(vault.KindGrant).String(), 300*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	w.mustCall()
	if w.tokens("refresh_token") != 1 {
		t.Errorf("%d refreshes", w.tokens("refresh_token"))
	}
}
