package grants

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/vault"
)

// scenario is what one simulated run is about. All of it comes from the seed.
type scenario struct {
	processes, callers, calls int
	rotate, revoke, grace     bool // of the authorization server

	lossy   bool // answers are lost, connections refused
	busy    bool // 429 and 503
	kills   int
	freezes int
	outages int // of the store: unavailable, hanging, or done without saying so
	logins  int // a person logs in again meanwhile
}

func newScenario(rng *rand.Rand) scenario {
	sc := scenario{processes: 1 + rng.IntN(3), callers: 1 + rng.IntN(2), calls: 1 + rng.IntN(3)}
	switch rng.IntN(6) {
	case 0:
	case 1:
		sc.rotate = true
	case 2, 3:
		sc.rotate, sc.revoke = true, true
	default:
		sc.rotate, sc.revoke, sc.grace = true, true, true
	}
	kind := rng.IntN(10)
	sc.lossy = kind == 3 || kind == 9
	sc.busy = kind == 4 || kind == 9
	if kind == 5 || kind == 9 {
		sc.kills = 1 + rng.IntN(2)
	}
	if kind == 6 || kind == 9 {
		sc.freezes = 1 + rng.IntN(2)
	}
	if kind == 7 || kind == 9 {
		sc.outages = 1 + rng.IntN(6)
	}
	if kind == 8 || kind == 9 {
		sc.logins = 1
	}
	return sc
}

// harmless reports whether nothing but the order of things is unusual.
func (sc scenario) harmless() bool {
	return !sc.lossy && !sc.busy && sc.outages == 0 && sc.kills == 0 && sc.freezes == 0
}

// fate is what the scheduler lets become of a step that waits for it.
type fate int

const (
	proceed fate = iota
	dies
	unavailable // the store does nothing and says so
	unsaid      // the store does it and says that it did not
	hang        // nothing comes back until the caller gives up
	refuse      // the connection is refused: nothing was sent
	reset       // the connection breaks
	tooMany     // 429
	broken      // 503
)

func (v fate) String() string {
	return [...]string{"", "killed", "unavailable", "done, said unavailable", "hangs", "refused", "reset", "429", "503"}[v]
}

// simOp is a goroutine that waits to be let on.
type simOp struct {
	proc   *simProc
	what   string
	caller int
	wire   bool // may take as long as it likes
	wake   chan fate
}

// simProc is one process: an engine of its own, on a store that all share.
type simProc struct {
	id     int
	m      *Manager
	client http.RoundTripper
	dead   bool
	frozen int          // steps still to come without it
	asking atomic.Int32 // token requests in flight
	losses int          // answers lost one after the other
	again  atomic.Bool  // the last one has to be asked for again
}

func (p *simProc) String() string { return fmt.Sprintf("P%d", p.id) }

// state is what others on the machine see of it.
func (p *simProc) state() senderState {
	switch {
	case p.dead:
		return senderGone
	case p.frozen > 0:
		return senderStopped
	}
	return senderUnknown
}

// simRun is one run: processes whose every step towards the store, the authorization
// server and the resource waits until a scheduler, driven by the seed, lets it on.
// What lies between two such steps is the real code.
type simRun struct {
	rng    *rand.Rand
	plan   scenario
	sc     scenario // what of the plan is still to come
	bug    simBug
	mem    *vault.Memory
	server *simServer
	procs  []*simProc
	a      Account
	srv    config.Server

	mu      sync.Mutex // guards parked
	parked  []*simOp
	pending sync.WaitGroup

	left      atomic.Int32 // callers still at work
	busy      atomic.Int32 // calls in flight
	calm      bool
	down      time.Time // the store is away until then
	quiet     time.Time // nobody asks the server before
	holder    map[string]*simProc
	lapsed    bool       // a lease ran out under somebody who is still at work
	last      *simRecord // the grant record as it is in the store
	violation error
	hash      uint64
	steps     int
	figures   simFigures
	tracing   bool
	start     time.Time
	trace     []string
}

var errKilled = errors.New("the process is dead")

type callerKey struct{}

// park waits for the scheduler.
func (r *simRun) park(ctx context.Context, p *simProc, what string, wire bool) (fate, error) {
	caller, _ := ctx.Value(callerKey{}).(int)
	op := &simOp{proc: p, what: what, caller: caller, wire: wire, wake: make(chan fate, 1)}
	r.mu.Lock()
	if p.dead {
		r.mu.Unlock()
		return dies, errKilled
	}
	r.parked = append(r.parked, op)
	r.mu.Unlock()
	select {
	case v := <-op.wake:
		if v == dies {
			return v, errKilled
		}
		return v, nil
	case <-ctx.Done():
		r.mu.Lock()
		r.parked = slices.DeleteFunc(r.parked, func(o *simOp) bool { return o == op })
		r.mu.Unlock()
		return hang, ctx.Err()
	}
}

// drive runs the world until all callers are done.
func (r *simRun) drive() {
	for limit := r.steps + 20_000; ; r.steps++ {
		synctest.Wait()
		switch {
		case r.violation != nil || r.left.Load() == 0:
			return
		case r.steps > limit:
			r.violate("no end: after %d steps %d callers still wait", r.steps, r.left.Load())
			return
		}
		r.step()
	}
}

func (r *simRun) step() {
	ready := r.ready()
	if !r.calm && r.mischief() {
		return
	}
	patient := !slices.ContainsFunc(ready, func(o *simOp) bool { return !o.wire })
	if len(ready) == 0 || patient && !r.calm && r.rng.IntN(4) == 0 {
		r.pass(len(ready) == 0)
		return
	}
	op := ready[r.rng.IntN(len(ready))]
	r.let(op, r.decide(op))
}

// ready returns what may be let on, in an order that depends on nothing but the seed.
func (r *simRun) ready() []*simOp {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*simOp
	for _, op := range r.parked {
		if op.proc.frozen == 0 {
			out = append(out, op)
		}
	}
	slices.SortFunc(out, func(a, b *simOp) int {
		return cmp.Or(cmp.Compare(a.proc.id, b.proc.id), strings.Compare(a.what, b.what), cmp.Compare(a.caller, b.caller))
	})
	return out
}

func (r *simRun) let(op *simOp, v fate) {
	r.mu.Lock()
	r.parked = slices.DeleteFunc(r.parked, func(o *simOp) bool { return o == op })
	r.mu.Unlock()
	r.note(op.proc, op.what, v)
	op.wake <- v
}

// decide says what becomes of a step.
func (r *simRun) decide(op *simOp) fate {
	if r.calm {
		return proceed
	}
	switch {
	case isStore(op.what):
		if time.Now().Before(r.down) {
			return unavailable
		}
		odds := 6
		if strings.HasPrefix(op.what, "store: put fenced") {
			odds = 2 // where it hurts
		}
		if r.sc.outages > 0 && r.rng.IntN(odds) == 0 {
			r.sc.outages--
			r.figures.Outages++
			if r.rng.IntN(4) == 0 {
				r.down = time.Now().Add(time.Duration(1+r.rng.IntN(60)) * time.Second)
			}
			return []fate{unavailable, unsaid, hang}[r.rng.IntN(3)]
		}
	case op.what == "wire: token request" && r.sc.busy && r.rng.IntN(3) == 0:
		return []fate{tooMany, broken}[r.rng.IntN(2)]
	case strings.HasPrefix(op.what, "wire: token") && r.sc.lossy && r.rng.IntN(4) == 0:
		if op.what == "wire: token request" {
			return []fate{refuse, reset, hang}[r.rng.IntN(3)]
		}
		return []fate{reset, reset, hang}[r.rng.IntN(3)]
	}
	return proceed
}

// mischief does to the world what is not a step of anybody in it.
func (r *simRun) mischief() bool {
	switch r.rng.IntN(24) {
	case 0:
		// A token that was renewed a moment ago and is refused at once is taken for
		// a token that does not fit, so only older ones are.
		if r.last != nil {
			if a := r.server.access[r.last.Access]; time.Since(a.issued) > young && time.Now().Before(a.until) {
				r.server.invalidate(r.last.Access)
				r.note(nil, "the resource refuses "+r.last.Access+" from now on", proceed)
				return true
			}
		}
	case 1, 2:
		if p := r.victim(); r.sc.kills > 0 && p != nil {
			r.sc.kills--
			r.figures.Kills++
			r.kill(p)
			return true
		}
	case 3, 4:
		if p := r.victim(); r.sc.freezes > 0 && p != nil && p.frozen == 0 {
			r.sc.freezes--
			r.figures.Freezes++
			p.frozen = 5 + r.rng.IntN(60)
			r.note(p, "stands still", proceed)
			return true
		}
	case 5:
		if p := r.procs[r.rng.IntN(len(r.procs))]; r.sc.logins > 0 && !p.dead {
			r.sc.logins--
			r.login(p)
			return true
		}
	}
	return false
}

// victim picks a process that lives, mostly one that is renewing.
func (r *simRun) victim() *simProc {
	p := r.procs[r.rng.IntN(len(r.procs))]
	if p.dead || p.asking.Load() == 0 && r.rng.IntN(8) > 0 {
		return nil
	}
	return p
}

// pass lets time go by: little while somebody holds the lease, unless processes may
// stand still. No step is shorter than a wait for a lease, whose length is random.
func (r *simRun) pass(idle bool) {
	steps := []time.Duration{500 * time.Millisecond, time.Second}
	switch {
	case len(r.holder) == 0 && idle && r.busy.Load() == 0:
		steps = []time.Duration{5 * time.Second, 30 * time.Second, time.Minute}
	case len(r.holder) == 0 && !idle || r.plan.freezes > 0:
		steps = append(steps, 5*time.Second, 30*time.Second)
	}
	d := steps[r.rng.IntN(len(steps))]
	for _, p := range r.procs {
		if p.frozen > 0 {
			p.frozen--
		}
	}
	if r.tracing {
		r.note(nil, d.String()+" go by", proceed)
	}
	r.mix(d.String())
	time.Sleep(d)
}

// kill ends a process: whatever it waits for comes to nothing.
func (r *simRun) kill(p *simProc) {
	r.note(p, "is killed", proceed)
	r.mu.Lock()
	p.dead = true
	var rest []*simOp
	for _, op := range r.parked {
		if op.proc == p {
			op.wake <- dies
			continue
		}
		rest = append(rest, op)
	}
	r.parked = rest
	r.mu.Unlock()
	for _, c := range r.server.refresh {
		if c.by == p && !c.kept && c.family.current == c {
			c.family.excuse = "killed between the server's commit and the write"
		}
	}
}

// note takes a step into the run's fingerprint, and into the trace if there is one.
func (r *simRun) note(p *simProc, what string, v fate) {
	who := "--"
	if p != nil {
		who = p.String()
	}
	r.mix(who + what + v.String())
	if r.tracing {
		r.trace = append(r.trace, strings.TrimRight(fmt.Sprintf("%9.3fs %s %s %s", time.Since(r.start).Seconds(), who, what, v), " "))
	}
}

func (r *simRun) mix(text string) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // never fails
	r.hash = r.hash*1099511628211 ^ h.Sum64()
}

// violate ends the run: a promise was broken.
func (r *simRun) violate(format string, args ...any) {
	if r.violation == nil {
		r.violation = fmt.Errorf(format, args...)
		r.note(nil, "VIOLATION: "+r.violation.Error(), proceed)
	}
}
