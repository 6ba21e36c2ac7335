package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/status"
)

// noon is when the tables of these tests are looked at.
func noon() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }

// likeTheManual is the table that people are shown first.
func likeTheManual() statusBoard {
	b := statusBoard{Servers: []statusServer{
		{
			Server: status.Server{ServerStatus: host.ServerStatus{
				Name: "linear", Account: "work", State: "connected", Tools: 23, ProtocolVersion: "x",
				Auth: host.AuthStatus{State: host.AuthOK, Expires: noon().Add(52 * time.Minute), CanRefresh: true},
			}, LastCall: noon().Add(-2 * time.Minute)},
		},
		{Server: status.Server{ServerStatus: host.ServerStatus{Name: "github", State: "disconnected", Tools: 41, Lazy: true, ProtocolVersion: "x", Auth: host.AuthStatus{State: host.AuthOK}}}},
		{
			Server: status.Server{ServerStatus: host.ServerStatus{
				Name: "figma", State: "needs_auth", Tools: 12, ProtocolVersion: "x",
				Auth: host.AuthStatus{State: host.AuthNeedsLogin, Reason: "expired 3 h ago", Command: "usher login figma"},
			}},
		},
		{Server: status.Server{ServerStatus: host.ServerStatus{Name: "filesystem", State: "connected", Tools: 9, ProtocolVersion: "x", Auth: host.AuthStatus{State: host.AuthNone}}, LastCall: noon()}},
		{Server: status.Server{ServerStatus: host.ServerStatus{Name: "old-thing", State: "ejected", RestartCount: 6, Auth: host.AuthStatus{State: host.AuthNone}}, LastCall: noon().Add(-time.Hour)}},
	}}
	cfg := &config.Config{Servers: []config.Server{config.Server{Name: "old-thing"}.WithDefaults()}}
	for i := range b.Servers {
		srv, _ := cfg.Server(b.Servers[i].Name)
		b.Servers[i].Note = b.Servers[i].note(srv, nil)
	}
	return b
}

func TestStatusTable(t *testing.T) {
	tests := []struct {
		name  string
		width int
		want  string
	}{
		{"no terminal", 0, `
NAME         STATE        AUTH                   TOOLS   LAST CALL  NOTE
linear@work  connected    ok, 52 min, refreshes     23   2 min ago
github       idle         ok                        41   –          connects on the first call
figma        needs login  expired 3 h ago           12*  –          usher login figma
filesystem   connected    –                          9   now
old-thing    ejected      –                          –   1 h ago    6 restarts in 5 min: usher logs old-thing, then usher reload old-thing
`},
		{"wide", 200, `
NAME         STATE        AUTH                   TOOLS   LAST CALL  NOTE
linear@work  connected    ok, 52 min, refreshes     23   2 min ago
github       idle         ok                        41   –          connects on the first call
figma        needs login  expired 3 h ago           12*  –          usher login figma
filesystem   connected    –                          9   now
old-thing    ejected      –                          –   1 h ago    6 restarts in 5 min: usher logs old-thing, then usher reload old-thing
`},
		{"80 columns", 80, `
NAME         STATE        AUTH                   TOOLS   LAST CALL  NOTE
linear@work  connected    ok, 52 min, refreshes     23   2 min ago
github       idle         ok                        41   –
  connects on the first call
figma        needs login  expired 3 h ago           12*  –
  usher login figma
filesystem   connected    –                          9   now
old-thing    ejected      –                          –   1 h ago
  6 restarts in 5 min: usher logs old-thing, then usher reload old-thing
`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := likeTheManual()
			got := b.Table(look{now: noon(), width: tt.width})
			if diff := cmp.Diff(strings.TrimPrefix(tt.want, "\n"), got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			for line := range strings.Lines(got) {
				if tt.width > 0 && cmdutil.TextWidth(strings.TrimRight(line, "\n")) > tt.width {
					t.Errorf("wider than %d: %q", tt.width, line)
				}
			}
		})
	}
}

// TestStatusTableFits wants no line wider than the terminal, and the states still
// to be read, whatever the names and reasons are.
func TestStatusTableFits(t *testing.T) {
	b := statusBoard{Servers: []statusServer{{
		Server: status.Server{ServerStatus: host.ServerStatus{
			Name: strings.Repeat("a-very-long-name-", 5), State: "needs_auth", Tools: 12345, ProtocolVersion: "x",
			Auth: host.AuthStatus{State: host.AuthNeedsLogin, Reason: strings.Repeat("the server said no and ", 9)},
		}, LastCall: noon().Add(-59 * time.Minute)},
		Note: strings.Repeat("usher login 日本語 ", 20) + "\x1b[2J",
	}}}
	for _, width := range []int{80, 100, 200} {
		got := b.Table(look{now: noon(), width: width})
		for line := range strings.Lines(got) {
			if n := cmdutil.TextWidth(strings.TrimRight(line, "\n")); n > width {
				t.Errorf("width %d: %d columns in %q", width, n, line)
			}
		}
		if !strings.Contains(got, "needs login") || strings.Contains(got, "\x1b") {
			t.Errorf("width %d: %q", width, got)
		}
	}
	coloured := b.Table(look{now: noon(), width: 80, colour: true})
	if !strings.Contains(coloured, "\x1b[33mneeds login\x1b[0m") {
		t.Errorf("no colour in %q", coloured)
	}
}

func served(pid int, servers ...status.Server) status.Report {
	return status.Report{PID: pid, Started: noon(), Servers: servers}
}

func reported(name string, state host.State, change func(*status.Server)) status.Server {
	r := status.Server{ServerStatus: host.ServerStatus{Name: name, State: state, Circuit: "closed"}}
	if change != nil {
		change(&r)
	}
	return r
}

// TestMergeBoard wants several instances, lanes and memory as one row a server.
func TestMergeBoard(t *testing.T) {
	remembered := host.Status{Servers: []host.ServerStatus{
		{Name: "math", State: host.Disconnected, Tools: 3, ProtocolVersion: "1"},
		{Name: "only-here", State: host.Disconnected, Lazy: true, Circuit: "closed"},
	}}
	busy := func(n int) func(*status.Server) {
		return func(r *status.Server) {
			r.Active, r.InFlight, r.RefCount, r.Tools, r.ProtocolVersion = true, n, n, 19, "2"
			r.LastCall = noon().Add(time.Duration(n) * time.Second)
		}
	}
	lane := func(r *status.Server) {
		r.Lane, r.RestartCount, r.LastError, r.Circuit = "a", 2, "it broke", "open"
	}
	b := MergeBoard(remembered, []status.Report{
		served(1, reported("math", host.Connected, busy(2)), reported("math", host.Failed, lane)),
		served(2, reported("math", host.Connected, busy(3)), reported("sick", host.Disconnected, nil)),
		served(3, reported("math", host.Disconnected, nil), reported("sick", host.Ejected, func(r *status.Server) { r.Ejected = true })),
	})
	want := []statusServer{
		{
			Server: status.Server{ServerStatus: host.ServerStatus{
				Name: "math", State: "connected", Active: true, InFlight: 5, RefCount: 5, RestartCount: 2, Tools: 19, ProtocolVersion: "2",
				Circuit: "open", LastError: "it broke",
			}, LastCall: noon().Add(3 * time.Second)},
			Ushers: []statusUsher{{PID: 1, State: "connected"}, {PID: 2, State: "connected"}, {PID: 3, State: "disconnected"}},
		},
		{Server: status.Server{ServerStatus: host.ServerStatus{Name: "only-here", State: "disconnected", Lazy: true, Circuit: "closed"}}, Ushers: []statusUsher{}},
		{
			Server: status.Server{ServerStatus: host.ServerStatus{Name: "sick", State: "ejected", Ejected: true, Circuit: "closed"}},
			Ushers: []statusUsher{{PID: 2, State: "disconnected"}, {PID: 3, State: "ejected"}},
		},
	}
	if diff := cmp.Diff(want, b.Servers); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if len(b.Ushers) != 3 {
		t.Errorf("ushers %v", b.Ushers)
	}
}

func TestStatusNotes(t *testing.T) {
	tests := []struct {
		name string
		row  statusServer
		want string
	}{
		{"all well", statusServer{Server: status.Server{ServerStatus: host.ServerStatus{State: "connected"}}}, ""},
		{"eager and idle", statusServer{Server: status.Server{ServerStatus: host.ServerStatus{State: "disconnected"}}}, ""},
		{"failed", statusServer{Server: status.Server{ServerStatus: host.ServerStatus{State: "failed", LastError: "s: no\nluck"}}}, "no luck: usher doctor s"},
		{"open circuit", statusServer{Server: status.Server{ServerStatus: host.ServerStatus{State: "connected", Circuit: "open", ConsecutiveFailures: 5}}}, "circuit open after 5 failures: usher reload s"},
		{"busy", statusServer{Server: status.Server{ServerStatus: host.ServerStatus{State: "connected", InFlight: 2}}}, "2 in flight"},
		{"login without a command", statusServer{Server: status.Server{ServerStatus: host.ServerStatus{State: "needs_auth", Account: "work"}}}, "usher login s@work"},
		{"elsewhere", statusServer{Server: status.Server{ServerStatus: host.ServerStatus{State: "connected"}}, Ushers: []statusUsher{{PID: 1, State: "connected"}, {PID: 2, State: "failed"}}}, "failed in pid 2"},
		{"ejected once", statusServer{Server: status.Server{ServerStatus: host.ServerStatus{State: "ejected", RestartCount: 1, Circuit: "open"}}}, "1 restart: usher logs s, then usher reload s"},
		{"budget", statusServer{Server: status.Server{ServerStatus: host.ServerStatus{Name: "s", State: "connected", Tools: 1}}}, "5 of 7 calls per 1 h"},
	}
	for _, tt := range tests {
		tt.row.Name = "s"
		var budgets []policy.BudgetStatus
		if tt.name == "budget" {
			budgets = []policy.BudgetStatus{{Server: "other", RunLimit: 1}, {Server: "s", Window: time.Hour, WindowUsed: 5, WindowLimit: 7}}
		}
		if got := tt.row.note(config.Server{}, budgets); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestMergeBudgets(t *testing.T) {
	got := mergeBudgets(mergeBudgets(nil, []policy.BudgetStatus{{Run: 2, RunLimit: 9, WindowUsed: 5}, {Server: "a"}}),
		[]policy.BudgetStatus{{Run: 3, RunLimit: 9, WindowUsed: 4, Refill: noon()}})
	want := []policy.BudgetStatus{{Run: 5, RunLimit: 9, WindowUsed: 5, Refill: noon()}, {Server: "a"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestWatchStatus wants one page a second on a terminal, and elsewhere a line when
// something is different.
func TestWatchStatus(t *testing.T) {
	watch := func(t *testing.T, tty bool, o *statusOptions) string {
		var out bytes.Buffer
		synctest.Test(t, func(t *testing.T) {
			f := &cmdutil.Factory{IO: cmdutil.IO{Out: &out, Err: &out, OutTTY: tty, Width: 80, System: config.System{LookupEnv: func(string) (string, bool) { return "1", true }}}}
			ctx, stop := context.WithTimeout(t.Context(), 3500*time.Millisecond)
			defer stop()
			looks := 0
			err := watchStatus(ctx, f, o, time.Second, func() (statusBoard, error) {
				looks++
				b := statusBoard{Servers: []statusServer{{Server: reported("math", "connected", nil)}, {Server: reported("sick", "connecting", nil)}}}
				if looks == 3 {
					b.Servers[1].State, b.Servers[1].Note = "failed", "no luck"
				}
				if looks == 4 {
					b.Servers = b.Servers[:1]
				}
				return b, nil
			})
			if err != nil || looks != 4 {
				t.Errorf("%d looks, %v; want 4", looks, err)
			}
		})
		return out.String()
	}
	got := watch(t, false, &statusOptions{})
	want := "00:00:00  math  connected\n00:00:00  sick  connecting\n00:00:02  sick  failed  no luck\n00:00:03  sick  gone\n"
	if diff := cmp.Diff(want, shiftClock(got)); diff != "" {
		t.Errorf("changes (-want +got)\n%s", diff)
	}
	if n := strings.Count(watch(t, false, &statusOptions{json: true}), "\n"); n != 3 {
		t.Errorf("%d values for 3 different boards", n)
	}
	page := watch(t, true, &statusOptions{})
	if strings.Count(page, topLeft) != 4 || strings.Count(page, otherScreen) != 1 || !strings.Contains(page, backAgain+"NAME") {
		t.Errorf("drawn: %q", page)
	}
	if strings.Contains(page, "\x1b[3") {
		t.Errorf("colours in spite of NO_COLOR: %q", page)
	}
}

// shiftClock writes times as seen from the first one.
func shiftClock(text string) string {
	var out strings.Builder
	var first time.Time
	for line := range strings.Lines(text) {
		at, err := time.Parse(time.TimeOnly, line[:8])
		if err != nil {
			return text
		}
		if first.IsZero() {
			first = at
		}
		fmt.Fprint(&out, time.Time{}.Add(at.Sub(first)).Format(time.TimeOnly), line[8:])
	}
	return out.String()
}

func TestWatchStatusFails(t *testing.T) {
	broken := errors.New("the store is gone")
	f := &cmdutil.Factory{IO: cmdutil.IO{Out: &bytes.Buffer{}}}
	err := watchStatus(t.Context(), f, &statusOptions{}, time.Second, func() (statusBoard, error) { return statusBoard{}, broken })
	if !errors.Is(err, broken) {
		t.Errorf("%v, want %v", err, broken)
	}
}

func TestSpoken(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Hour: "0 s", 59 * time.Second: "59 s", 60 * time.Second: "1 min", 119 * time.Minute: "1 h", 47 * time.Hour: "47 h", 72 * time.Hour: "3 d",
	} {
		if got := Spoken(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}
