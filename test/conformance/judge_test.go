package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParseList(t *testing.T) {
	const list = `Required for 2025-11-25 (3 scenarios, frozen; run at the 2025-11-25 wire):

Server scenarios (test against a server):
  - ping

Client scenarios (test against a client):
  - initialize
  - auth/metadata-default

Run and reported, but never scored:
  extension (2):
    - auth/dpop [client]
    - tasks-lifecycle [server]
`
	tests := []struct {
		name, side, text string
		want             []scenario
		wantErr          string
	}{
		{"client", "client", list, []scenario{{"initialize", true}, {"auth/metadata-default", true}, {"auth/dpop", false}}, ""},
		{"server", "server", list, []scenario{{"ping", true}, {"tasks-lifecycle", false}}, ""},
		{"a row that cannot be read", "client", strings.Replace(list, "  - initialize", "  * initialize", 1), nil, "read 2 required ones, the suite says 3"},
		{"empty", "client", "", nil, "the suite says -1"},
		{"no such side", "observer", list, nil, "none for the observer side"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseList(tt.text, tt.side)
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(scenario{})); diff != "" {
				t.Errorf("scenarios (-want +got):\n%s", diff)
			}
			if (tt.wantErr == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("error %v, want %q", err, tt.wantErr)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	const two = `[{"id":"a","status":"SUCCESS"},{"id":"b","status":"SUCCESS"},{"id":"c","status":"INFO"}]`
	floors := map[string]int{"s": 2}
	tests := []struct {
		name, scenario, checks string
		err                    error
		want                   string // part of the first problem; empty passes
	}{
		{"pass", "s", two, nil, ""},
		{"non-zero exit", "s", two, errors.New("exit status 1"), "suite: exit status 1"},
		{"failure", "s", `[{"id":"a","status":"FAILURE","errorMessage":"no"}]`, nil, "FAILURE a: no"},
		{"warning", "s", `[{"id":"a","status":"WARNING","errorMessage":"late"}]`, nil, "WARNING a: late"},
		{"below the floor", "s", `[{"id":"a","status":"SUCCESS"}]`, nil, "only 1 checks passed, the floor is 2"},
		{"unknown status", "s", `[{"id":"a","status":"MAYBE"}]`, nil, "unknown status"},
		{"no floor", "new", two, nil, "no floor is recorded"},
		{"no result", "s", "", nil, "left 0 results"},
		{"broken result", "s", "{", nil, "unexpected end of JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if tt.checks != "" {
				sub := filepath.Join(dir, "s-2026")
				if err := os.MkdirAll(sub, 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(sub, "checks.json"), []byte(tt.checks), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			r := result{scenario: scenario{name: tt.scenario}}
			r.judge(run{err: tt.err}, dir, floors)
			switch {
			case tt.want == "" && !r.ok():
				t.Errorf("problems %q, want none", r.problems)
			case tt.want != "" && (r.ok() || !strings.Contains(r.problems[0], tt.want)):
				t.Errorf("problems %q, want %q first", r.problems, tt.want)
			}
		})
	}
}

// Only lateness may be tried again: a client that did everything in time and then
// hung was once taken for a slow machine.
func TestOnlyLatenessIsTriedAgain(t *testing.T) {
	const (
		good   = `{"id":"client-sse-graceful-reconnect","status":"SUCCESS"}`
		bad    = `{"id":"client-sse-last-event-id","status":"FAILURE"}`
		onTime = `{"id":"client-sse-retry-timing","status":"SUCCESS"}`
		late   = `{"id":"client-sse-retry-timing","status":"WARNING"}`
	)
	failed := errors.New("exit status 1")
	tests := []struct {
		name, scenario, checks, output string
		err                            error
		want                           bool
	}{
		{"late", "sse-retry", good + "," + late, "", failed, true},
		{"in time, then hung", "sse-retry", good + "," + onTime, "CLIENT EXITED WITH ERROR (code 1)", failed, false},
		{"late and hung", "sse-retry", good + "," + late, "Client exited with code 1", failed, false},
		{"late and ended by the suite", "sse-retry", good + "," + late, "CLIENT TIMED OUT", failed, false},
		{"late and wrong", "sse-retry", bad + "," + late, "", failed, false},
		{"wrong", "sse-retry", bad + "," + onTime, "", failed, false},
		{"late where time is not measured", "tools_call", late, "", failed, false},
		{"passed", "sse-retry", good + "," + onTime, "", nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "checks.json"), []byte("["+tt.checks+"]"), 0o644); err != nil {
				t.Fatal(err)
			}
			r := result{scenario: scenario{name: tt.scenario}}
			r.judge(run{err: tt.err, output: []byte(tt.output)}, dir, map[string]int{"sse-retry": 2, "tools_call": 1})
			if r.onlyLate != tt.want {
				t.Errorf("onlyLate = %v, want %v (problems %q)", r.onlyLate, tt.want, r.problems)
			}
		})
	}
}

func TestFloorsCoverEveryLeg(t *testing.T) {
	f, err := readFloors()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range legs("client", f, true) {
		if len(l.floors) == 0 {
			t.Errorf("%s has no floors", l.name())
		}
	}
}

func TestNothingRunIsNoPass(t *testing.T) {
	var out bytes.Buffer
	if (tally{}).close(&out, time.Second) {
		t.Error("a run of nothing passed")
	}
	if !strings.HasSuffix(out.String(), "\nconformance: 0 passed, 0 failed\n") {
		t.Errorf("closing line missing in %q", out.String())
	}
}

func TestReportNamesWhatFailed(t *testing.T) {
	var out bytes.Buffer
	report(&out, leg{side: "client", via: "library", revision: "R"}, []result{
		{scenario: scenario{"good", true}, passed: 3, floor: 3, earlier: []string{"try 1: late"}},
		{scenario: scenario{"bad", false}, problems: []string{"FAILURE x: y"}, output: []byte("client says no\n")},
	})
	for _, want := range []string{"ok    good", "try 1: late", "FAIL  bad", "unscored", "FAILURE x: y", "| client says no"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("report lacks %q:\n%s", want, out.String())
		}
	}
}
