package grants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/test/need"
	"github.com/usher-mcp/usher/vault"
)

// simFigures counts what happened in simulated runs.
type simFigures struct {
	Runs, Steps, Calls, Failed, Asked, Lost, Kills, Freezes, Outages int

	// Excused counts, by cause, the runs in which a login may come to harm that no
	// client can prevent, and of those the ones whose login was good in the end.
	Excused map[string]saved
}

type saved struct{ Runs, Saved int }

func (f *simFigures) add(o simFigures) {
	f.Runs += max(1, o.Runs)
	f.Steps += o.Steps
	f.Calls += o.Calls
	f.Failed += o.Failed
	f.Asked += o.Asked
	f.Lost += o.Lost
	f.Kills += o.Kills
	f.Freezes += o.Freezes
	f.Outages += o.Outages
	for why, n := range o.Excused {
		if f.Excused == nil {
			f.Excused = map[string]saved{}
		}
		sum := f.Excused[why]
		f.Excused[why] = saved{sum.Runs + n.Runs, sum.Saved + n.Saved}
	}
}

// simulate makes the run of a seed. It must be called in a bubble.
func simulate(seed uint64, bug simBug, tracing bool) *simRun {
	rng := rand.New(rand.NewPCG(seed, 1))
	r := &simRun{rng: rng, sc: newScenario(rng), bug: bug, mem: vault.NewMemory(), a: Account{Server: "srv"}, holder: map[string]*simProc{}, tracing: tracing, start: time.Now()}
	r.srv = config.Server{Name: "srv", Transport: config.TransportHTTP, URL: mcpURL, OAuth: &config.OAuth{}}
	r.plan = r.sc
	r.server = newSimServer(r.plan)
	r.prepare()
	for range r.sc.processes {
		r.startProcess()
	}
	for i := range r.sc.processes * r.sc.callers {
		r.call(r.procs[i%r.sc.processes], i, r.pauses())
	}
	r.drive()
	if r.violation == nil {
		r.aftermath()
	}
	r.end()
	r.figures.Steps = r.steps
	return r
}

// prepare stores the login that all are about.
func (r *simRun) prepare() {
	c := r.server.login()
	g := r.grantOf(c)
	g.Generation = 1
	data, err := g.Encode()
	if err == nil {
		_, err = r.mem.Put(context.Background(), r.simKey(), data, 0)
	}
	if err != nil {
		r.violate("prepare: %v", err)
		return
	}
	r.wrote(nil, r.simKey(), data)
}

// pauses draws how long a caller waits before each of its calls: often not at all,
// or until the token is due or over.
func (r *simRun) pauses() []time.Duration {
	out := make([]time.Duration, r.sc.calls)
	for i := range out {
		out[i] = []time.Duration{0, 0, 2 * time.Second, 70 * time.Second, 235 * time.Second, 310 * time.Second}[r.rng.IntN(6)]
	}
	return out
}

// call starts a caller that makes some calls, each after a pause.
func (r *simRun) call(p *simProc, caller int, pauses []time.Duration) {
	r.left.Add(1)
	ctx := context.WithValue(context.Background(), callerKey{}, caller)
	r.pending.Go(func() {
		defer r.left.Add(-1)
		for _, pause := range pauses {
			time.Sleep(pause)
			if _, err := r.park(ctx, p, "wire: begins a call", true); err != nil {
				return
			}
			err := r.callOnce(ctx, p)
			if _, gone := r.park(ctx, p, "wire: ends a call", true); gone != nil {
				return
			}
			r.called(p, err)
		}
	})
}

// aftermath lets everything heal, and looks what is left of the login: every process
// that may have something in memory calls once more, and then a new one does.
func (r *simRun) aftermath() {
	r.calm = true
	r.note(nil, "no more trouble from here", proceed)
	for _, p := range r.procs {
		p.frozen = 0
	}
	r.settle()
	time.Sleep(2 * maxBackoff)
	if r.sickStore() {
		// Somebody may have the login in memory only.
		for _, p := range r.procs {
			r.call(p, 0, []time.Duration{0})
		}
		r.drive()
		r.settle()
		time.Sleep(maxBackoff)
	}
	p := r.startProcess()
	var last error
	r.left.Add(1)
	r.pending.Go(func() {
		last = r.callOnce(context.Background(), p)
		r.left.Add(-1)
	})
	r.drive()
	if r.violation != nil {
		return
	}
	was := r.excused()
	if was != "" {
		n := saved{Runs: 1}
		if last == nil {
			n.Saved = 1
		}
		r.figures.Excused = map[string]saved{was: n}
	}
	r.judge(last, was)
}

// settle lets work that goes on without a caller come to its end.
func (r *simRun) settle() {
	for end := time.Now().Add(renewLimit + saveLimit); time.Now().Before(end) && r.violation == nil; r.steps++ {
		synctest.Wait()
		if ready := r.ready(); len(ready) > 0 {
			r.let(ready[r.rng.IntN(len(ready))], proceed)
			continue
		}
		if !r.held() {
			return
		}
		time.Sleep(time.Second)
	}
}

// held reports whether a process that lives has a lease.
func (r *simRun) held() bool {
	for _, p := range r.holder {
		if !p.dead {
			return true
		}
	}
	return false
}

// judge checks the state at the end.
func (r *simRun) judge(last error, excuse string) {
	rec, err := r.mem.Get(context.Background(), r.simKey())
	if errors.Is(err, vault.ErrNotFound) {
		r.violate("the login was deleted")
		return
	}
	var now simRecord
	if err == nil {
		err = json.Unmarshal(rec.Data, &now)
	}
	switch {
	case err != nil:
		r.violate("the login cannot be read: %v", err)
	case last == nil:
	case r.server.acceptable(now.Refresh):
		r.violate("a call fails although the stored refresh token is good: %v", last)
	case excuse == "":
		r.violate("the login is lost: %v", last)
	}
}

// end kills everything and waits for it.
func (r *simRun) end() {
	for _, p := range r.procs {
		r.kill(p)
	}
	r.pending.Wait()
	for _, p := range r.procs {
		p.m.env.ShutDown()
		p.m.env.Wait()
	}
	_ = r.mem.Close()
}

// report says how a run went wrong, step by step, and how to see it again.
func (r *simRun) report(seed uint64) string {
	return fmt.Sprintf("seed %d: %v\nsee it again: USHER_SIM_SEED=%d go test ./auth -run '^TestSimulation$'\n%+v\n%s", seed, r.violation, seed, r.plan, strings.Join(r.trace, "\n"))
}

// simulateMany runs seeds from first on until count runs are done or one goes wrong,
// whose seed it returns.
func simulateMany(t *testing.T, first, count uint64, bug simBug) (total simFigures, different int, bad *simRun, seed uint64) {
	seen := map[uint64]struct{}{}
	synctest.Test(t, func(*testing.T) {
		for seed = first; seed < first+count; seed++ {
			r := simulate(seed, bug, false)
			total.add(r.figures)
			seen[r.hash] = struct{}{}
			if r.violation != nil {
				bad = simulate(seed, bug, true)
				return
			}
		}
	})
	return total, len(seen), bad, seed
}

// simSetting reads a number from the environment.
func simSetting(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// Runs of the real code for renewing, each in an order of its own: several processes,
// servers that rotate, revoke and are lenient, lost answers, 429, kills, pauses,
// failing stores and logins meanwhile. No login is lost or renewed twice.
//
// USHER_SIM_SEED shows one run, USHER_SIM_RUNS sets how many there are, and
// USHER_SIM_FIRST with which seed they begin.
func TestSimulation(t *testing.T) {
	if seed := simSetting(t, "USHER_SIM_SEED", 0); seed != 0 {
		synctest.Test(t, func(t *testing.T) {
			r := simulate(seed, noBug, true)
			t.Log(r.report(seed))
			if r.violation != nil {
				t.Error(r.violation)
			}
		})
		return
	}
	runs := uint64(300)
	if need.Proof() {
		runs = 20_000 // under the race detector; make proof runs a million without
	}
	runs = simSetting(t, "USHER_SIM_RUNS", runs)
	first := simSetting(t, "USHER_SIM_FIRST", 1)
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // much garbage, little that lives
	var mu sync.Mutex                                 // guards total, different
	var total simFigures
	different := 0
	t.Run("shards", func(t *testing.T) {
		shards := uint64(runtime.GOMAXPROCS(0))
		for shard := range shards {
			t.Run(fmt.Sprint(shard), func(t *testing.T) {
				t.Parallel()
				figures, distinct, bad, seed := simulateMany(t, first+shard*(runs/shards), runs/shards, noBug)
				if bad != nil {
					t.Fatal(bad.report(seed))
				}
				mu.Lock()
				defer mu.Unlock()
				total.add(figures)
				different += distinct
			})
		}
	})
	t.Logf("%d of the runs were different: %+v", different, total)
}

// The same seed is the same run, or a failure could not be looked at.
func TestSimulationRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for seed := uint64(1); seed <= 60; seed++ {
			a, b := simulate(seed, noBug, true), simulate(seed, noBug, true)
			if a.hash != b.hash {
				t.Fatalf("seed %d went two ways (-first +second):\n%s", seed, cmp.Diff(a.trace, b.trace))
			}
		}
	})
}

// The simulation finds what it is for.
func TestSimulationFindsBugs(t *testing.T) {
	for _, tt := range []struct {
		name string
		bug  simBug
		says string
	}{
		{"no lease", bugNoLease, "two refreshes for one expiry"},
		{"no fence", bugNoFence, "newer tokens are gone"},
		{"persist after use", bugLateWrite, "before it is stored"},
		{"no second look", bugStaleRead, ""},
		{"no notes of requests", bugNoNote, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, bad, seed := simulateMany(t, 1, 20_000, tt.bug)
			if bad == nil {
				t.Fatal("not found")
			}
			if !strings.Contains(bad.violation.Error(), tt.says) {
				t.Errorf("found something else: %v", bad.violation)
			}
			t.Logf("found by run %d: %v", seed, bad.violation)
		})
	}
}
