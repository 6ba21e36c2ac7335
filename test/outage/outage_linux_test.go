package outage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/process"
	"github.com/usher-mcp/usher/test/need"
	"github.com/usher-mcp/usher/vault"
)

// The test binary plays the children of the tests: the guard and the server.
func TestMain(m *testing.M) {
	process.Main()
	if len(os.Args) > 1 && os.Args[1] == "child-fake" {
		os.Exit(fake.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}

// form is how long the outage lasts and how the server is supervised.
type form struct {
	outage, window time.Duration
	change         func(*config.Server)
}

func chosen() form {
	if need.Proof() {
		return form{outage: time.Minute, window: time.Minute, change: func(*config.Server) {}}
	}
	return form{outage: 3 * time.Second, window: 2 * time.Second, change: func(s *config.Server) {
		s.Supervision.CircuitThreshold = 3
		s.Supervision.CircuitReset, s.Supervision.RestartWindow = 500*time.Millisecond, 2*time.Second
	}}
}

// slack is what a busy machine may add to a time.
const slack = 5 * time.Second

// callsPerSecond on each surface.
const callsPerSecond = 20

// syncBuffer is a log to look into while it is written.
type syncBuffer struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// world is a gateway in front of one server, which is a script that starts a program.
type world struct {
	t      *testing.T
	dir    string
	log    syncBuffer
	host   *app.App
	url    string
	client *http.Client

	mu        sync.Mutex // guards what follows
	announced time.Time  // when the next try is, by the last error that said so
}

// path is a file of the world: "server" is the script, "program" what it starts,
// "starts" has a line for each start of the script.
func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func newWorld(t *testing.T, f form) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(exe, w.path("program")); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\necho $$ >>%q\nexec %q child-fake --name s\n", w.path("starts"), w.path("program"))
	if err := os.WriteFile(w.path("server"), []byte(script), 0o700); err != nil { //nolint:gosec // it is to be executed
		t.Fatal(err)
	}
	srv := config.Server{Name: "s", Command: w.path("server"), KeepAlive: time.Hour}.WithDefaults()
	f.change(&srv)
	cfg := &config.Config{Usher: config.DefaultSettings(), Servers: []config.Server{srv}}
	w.host, err = app.Open(t.Context(), &app.Options{
		Config: cfg, Store: vault.NewMemory(), Executable: exe, Log: slog.New(slog.NewTextHandler(&w.log, nil)),
		Load: config.LoadOptions{System: config.System{Home: w.dir, Workdir: w.dir, LookupEnv: func(name string) (string, bool) {
			return w.dir, name == "USHER_HOME"
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	g := w.host.Frontend().Gateway(nil)
	web := httptest.NewServer(g.Handler())
	w.url, w.client = web.URL, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 50}}
	t.Cleanup(func() {
		w.client.CloseIdleConnections()
		g.Close()
		web.Close()
		if err := w.host.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// surface is one way to call the tool.
type surface struct {
	name string
	call func(ctx context.Context) error
}

func (w *world) surfaces() []surface {
	over := func(path, name, arguments string) func(context.Context) error {
		return func(ctx context.Context) error { return w.post(ctx, path, name, arguments) }
	}
	return []surface{
		{"library", func(ctx context.Context) error {
			_, err := w.host.Call(ctx, "s", "echo", []byte(`{"text":"x"}`), nil)
			var e *host.Error
			if errors.As(err, &e) && e.RetryAfter > 0 {
				w.mu.Lock()
				w.announced = time.Now().Add(e.RetryAfter)
				w.mu.Unlock()
			}
			return err
		}},
		{"meta", over("/meta/mcp", "mcp", `{"action":"call","server":"s","tool":"echo","arguments":{"text":"x"}}`)},
		{"direct", over("/direct/mcp", "s__echo", `{"text":"x"}`)},
		{"server", over("/servers/s/mcp", "echo", `{"text":"x"}`)},
	}
}

// post calls a tool with the stateless protocol.
func (w *world) post(ctx context.Context, path, tool, arguments string) error {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{%q:"2026-07-28",%q:{}}}}`,
		tool, arguments, mcp.MetaVersion, mcp.MetaClientCaps)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	for k, v := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		wire.HeaderVersion: mcp.Latest, wire.HeaderMethod: mcp.MethodToolsCall, wire.HeaderName: tool,
	} {
		req.Header.Set(k, v)
	}
	res, err := w.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	reply, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK || !bytes.Contains(reply, []byte(`"result"`)) || bytes.Contains(reply, []byte(`"isError":true`)) {
		return fmt.Errorf("HTTP %d: %.300s", res.StatusCode, reply)
	}
	return nil
}

// starts are the process ids of all starts of the script so far.
func (w *world) starts() []string {
	w.t.Helper()
	raw, err := os.ReadFile(w.path("starts"))
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.Fields(string(raw))
}

// kill ends the server that runs.
func (w *world) kill() {
	w.t.Helper()
	all := w.starts()
	pid, err := strconv.Atoi(all[len(all)-1])
	if err != nil {
		w.t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		w.t.Fatal(err)
	}
}

// callAll calls through every surface, callsPerSecond each, until stop is called.
func (w *world) callAll() (stop func()) {
	ctx, end := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, s := range w.surfaces() {
		wg.Go(func() {
			tick := time.NewTicker(time.Second / callsPerSecond)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					wg.Go(func() { _ = s.call(ctx) }) // most fail, which is the point
				case <-ctx.Done():
					return
				}
			}
		})
	}
	return func() {
		end()
		wg.Wait()
	}
}

func (w *world) rename(from, to string) {
	w.t.Helper()
	if err := os.Rename(w.path(from), w.path(to)); err != nil {
		w.t.Fatal(err)
	}
}

// wait lasts for d.
func wait(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

func TestOutage(t *testing.T) {
	for _, gone := range []string{"server", "program"} {
		t.Run(gone, func(t *testing.T) {
			t.Parallel()
			f := chosen()
			w := newWorld(t, f)
			for _, s := range w.surfaces() {
				if err := s.call(t.Context()); err != nil {
					t.Fatalf("%s, before the outage: %v", s.name, err)
				}
			}
			before, dials := len(w.starts()), w.host.Stats().Host.Dials
			if before != 1 {
				t.Errorf("%d starts before the outage", before)
			}
			w.rename(gone, "away")
			w.kill()
			stop := w.callAll()
			wait(t, f.outage)
			periods := int(f.outage/f.window) + 1
			starts, dialled := len(w.starts())-before, int(w.host.Stats().Host.Dials-dials)
			t.Logf("%d starts of the script and %d dials in %s", starts, dialled, f.outage)
			if f.outage <= f.window {
				periods = 1
			}
			if starts > 5*periods || dialled > 5*periods {
				t.Errorf("%d starts and %d dials in %s, want at most 5 in %s", starts, dialled, f.outage, f.window)
			}
			w.mu.Lock()
			announced := w.announced
			w.mu.Unlock()
			w.rename("away", gone)
			w.comesBack(announced)
			stop()
			w.checkLog()
		})
	}
}

// comesBack checks that every surface works again when it should.
func (w *world) comesBack(announced time.Time) {
	w.t.Helper()
	back := time.Now()
	due := back.Add(2 * time.Second)
	if announced.After(due) {
		due = announced
	}
	for _, s := range w.surfaces() {
		for {
			err := s.call(w.t.Context())
			if err == nil {
				break
			}
			if time.Now().After(due.Add(slack)) {
				w.t.Errorf("%s: %v after the return and %v after the announced try: %v", s.name, time.Since(back), time.Since(announced), err)
				break
			}
			wait(w.t, 20*time.Millisecond)
		}
	}
	w.t.Logf("works again %v after the return; the next try was announced for %v after it", time.Since(back).Round(time.Millisecond), announced.Sub(back).Round(time.Millisecond))
	for _, s := range w.host.Status().Servers {
		if s.Ejected || s.Circuit != "closed" || s.State != host.Connected {
			w.t.Errorf("after the outage: %+v", s)
		}
	}
}

// checkLog checks that an operator can follow the outage, and that it was short.
func (w *world) checkLog() {
	w.t.Helper()
	log := w.log.String()
	for _, want := range []string{
		`level=WARN msg="the connection was lost" server=s`, `level=WARN msg="cannot connect" server=s reason=`,
		`level=WARN msg="the circuit is open" server=s reason=`, "next_try=", "max_restarts=5", `level=INFO msg="the circuit is closed`,
	} {
		if !strings.Contains(log, want) {
			w.t.Errorf("the log lacks %s", want)
		}
	}
	if strings.Contains(log, "ejected") {
		w.t.Error("ejected")
	}
	if n := strings.Count(log, "\n"); n > 60 {
		w.t.Errorf("%d lines", n)
	}
	if w.t.Failed() {
		w.t.Log(log)
	}
}
