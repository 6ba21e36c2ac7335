package process

import (
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fakeTree notes what it was sent and when, and ends when told.
type fakeTree struct {
	begin      time.Time
	log        []string
	dieOn      string        // the log entry, without its time, on which the child ends
	restAlso   bool          // and the rest of its tree with it
	restAfter  time.Duration // otherwise the rest ends then, by itself
	kills      int           // SIGKILLs the rest survives
	ended      bool
	everything bool
}

func (f *fakeTree) state() (bool, bool) {
	if f.restAfter > 0 && time.Since(f.begin) >= f.restAfter {
		f.everything = true
	}
	return f.ended, f.everything
}

func (f *fakeTree) signalGroup(sig syscall.Signal) { f.note("group", sig) }

func (f *fakeTree) signalAll(sig syscall.Signal) {
	f.note("all", sig)
	if sig == syscall.SIGKILL {
		f.kills--
		if f.kills < 0 {
			f.ended, f.everything = true, true
		}
	}
}

func (f *fakeTree) note(who string, sig syscall.Signal) {
	what := fmt.Sprintf("%s %s", who, sig)
	f.log = append(f.log, fmt.Sprintf("%v %s", time.Since(f.begin), what))
	if what == f.dieOn {
		f.ended, f.everything = true, f.restAlso
	}
}

func TestLadderSteps(t *testing.T) {
	type step struct {
		at time.Duration
		ev event
	}
	tests := []struct {
		name   string
		tree   fakeTree
		ladder ladder
		steps  []step
		want   []string
		end    time.Duration
		gone   bool
	}{
		{
			name: "deaf", steps: []step{{0, eventStop}},
			want: []string{"2s group terminated", "5s all killed"}, end: 5 * time.Second, gone: true,
		},
		{
			name: "a second stop changes nothing", steps: []step{{0, eventStop}, {time.Second, eventStop}, {3 * time.Second, eventStop}},
			want: []string{"2s group terminated", "5s all killed"}, end: 5 * time.Second, gone: true,
		},
		{
			name: "hears", tree: fakeTree{dieOn: "group terminated", restAlso: true}, steps: []step{{time.Second, eventStop}},
			want: []string{"3s group terminated"}, end: 3 * time.Second, gone: true,
		},
		{
			name: "the rest does not hear", tree: fakeTree{dieOn: "group terminated"}, steps: []step{{0, eventStop}},
			want: []string{"2s group terminated", "2s all terminated", "5s all killed"}, end: 5 * time.Second, gone: true,
		},
		{
			name: "ended before the rest", tree: fakeTree{ended: true},
			want: []string{"0s all terminated", "3s all killed"}, end: 3 * time.Second, gone: true,
		},
		{
			name: "the rest is polled", tree: fakeTree{ended: true, restAfter: time.Second}, ladder: ladder{poll: 300 * time.Millisecond},
			want: []string{"0s all terminated"}, end: 1200 * time.Millisecond, gone: true,
		},
		{
			name: "host dead", steps: []step{{time.Second, eventOrphaned}},
			want: []string{"1.5s group terminated", "3s all killed"}, end: 3 * time.Second, gone: true,
		},
		{
			name: "host dead while closing", steps: []step{{0, eventStop}, {1800 * time.Millisecond, eventOrphaned}},
			want: []string{"2s group terminated", "3.5s all killed"}, end: 3500 * time.Millisecond, gone: true,
		},
		{
			name: "host dead while terming", steps: []step{{0, eventStop}, {2500 * time.Millisecond, eventOrphaned}},
			want: []string{"2s group terminated", "4s all killed"}, end: 4 * time.Second, gone: true,
		},
		{
			name: "kill", steps: []step{{0, eventStop}, {time.Second, eventKill}},
			want: []string{"1s all killed"}, end: time.Second, gone: true,
		},
		{
			name: "kill is repeated", tree: fakeTree{kills: 2}, steps: []step{{0, eventKill}},
			want: []string{"0s all killed", "5ms all killed", "15ms all killed"}, end: 15 * time.Millisecond, gone: true,
		},
		{
			name: "cannot be killed", tree: fakeTree{kills: 1000}, ladder: ladder{giveUp: 20 * time.Millisecond}, steps: []step{{0, eventKill}},
			want: []string{"0s all killed", "5ms all killed", "15ms all killed", "35ms all killed"}, end: 35 * time.Millisecond,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := tt.ladder
				l.tree, l.grace, l.kill = &tt.tree, 2*time.Second, 3*time.Second
				begin := time.Now()
				tt.tree.begin = begin
				events := make(chan event, len(tt.steps))
				for _, s := range tt.steps {
					time.AfterFunc(s.at, func() { events <- s.ev })
				}
				gone := l.run(events)
				if gone != tt.gone || time.Since(begin) != tt.end {
					t.Errorf("ended %v after %v, want %v after %v", gone, time.Since(begin), tt.gone, tt.end)
				}
				if diff := cmp.Diff(tt.want, tt.tree.log); diff != "" {
					t.Errorf("steps (-want +got):\n%s", diff)
				}
			})
		})
	}
}
