package torture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Options steer a run. Exe, Self and Dir are required.
type Options struct {
	// Exe is the usher program that is put to the test.
	Exe string
	// Self is the program that runs [Child] under the command [ChildCommand], and the
	// fake servers under the command fake.
	Self string
	// Dir is an empty directory to work in. The caller removes it.
	Dir string
	// Seed decides what is done in which order; how long things take it cannot.
	Seed uint64
	// Time asks for the long form: each promise goes on until it has reached its full
	// measure, and all of them together no longer than this. 0: a short form of seconds.
	Time time.Duration
	// Only is the number of the one promise to check. 0: all.
	Only int
	// Done hears of each promise when it was checked; in the short form, where they
	// are checked at the same time, of several at once. Nil: nobody does.
	Done func(Promise)
}

// Report is the outcome of a run.
type Report struct {
	Version  string    `json:"version"`
	System   string    `json:"system"`
	CPUs     int       `json:"cpus"`
	Seed     uint64    `json:"seed"`
	Started  time.Time `json:"started"`
	Seconds  float64   `json:"seconds"`
	Promises []Promise `json:"promises"`
}

// Kept reports whether no promise was broken.
func (r Report) Kept() bool {
	return !slices.ContainsFunc(r.Promises, func(p Promise) bool { return !p.Kept })
}

// Promise is the outcome for one promise.
type Promise struct {
	Number int    `json:"promise"`
	Name   string `json:"name"`
	Kept   bool   `json:"kept"`
	// Full says that it was put to the test in full measure: in the long form, and
	// not cut short by the time.
	Full    bool     `json:"full_measure"`
	Seconds float64  `json:"seconds"`
	Figures []Figure `json:"figures"`
	// Skipped says why it could not be checked here.
	Skipped string `json:"skipped,omitempty"`
	// Broken says how the promise was broken, at most a few times.
	Broken []string `json:"broken,omitempty"`
}

// Figure is one thing that was counted.
type Figure struct {
	Name  string `json:"name"`
	Value int64  `json:"value"`
}

// String returns the figures as a sentence does: "200 kills, 0 logins lost".
func (p Promise) String() string {
	if p.Skipped != "" {
		return "not checked: " + p.Skipped
	}
	var parts []string
	for _, f := range p.Figures {
		parts = append(parts, fmt.Sprintf("%d %s", f.Value, f.Name))
	}
	return strings.Join(parts, ", ")
}

// chapter is a promise and what checks it.
type chapter struct {
	number int
	name   string
	need   time.Duration // what the full measure takes on two idle processors
	check  func(*trial) error
}

func chapters() []chapter {
	return []chapter{
		{1, "No acknowledged token is lost", 240 * time.Second, kills},
		{2, "One expiry, one refresh", 90 * time.Second, races},
		{3, "A failed refresh deletes no login", 80 * time.Second, faults},
		{4, "No callback reaches the wrong login", 40 * time.Second, callbacks},
		{5, "Nothing outlives the host", 130 * time.Second, leftovers},
		{6, "One bad server hurts only itself", 90 * time.Second, poisoned},
		{7, "A call that may have run is not run again", 45 * time.Second, crashes},
		{8, "Secrets stay home", 4 * time.Second, canaries},
		{9, "Approved means approved", time.Second, mutations},
		{10, "Hostile clients lock nobody out", 60 * time.Second, floods},
	}
}

// Names returns the promises by number.
func Names() map[int]string {
	names := map[int]string{}
	for _, c := range chapters() {
		names[c.number] = c.name
	}
	return names
}

// Run checks the guarantees. The error says why a check could not run; a broken
// guarantee is not an error, the report shows it.
func Run(ctx context.Context, opt Options) (Report, error) {
	r := Report{System: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU(), Seed: opt.Seed, Started: time.Now().UTC().Truncate(time.Second)}
	begin := time.Now()
	var chosen []chapter
	for _, c := range chapters() {
		if opt.Only == 0 || c.number == opt.Only {
			chosen = append(chosen, c)
		}
	}
	r.Promises = make([]Promise, len(chosen))
	check := func(i int, end time.Time) (err error) {
		if r.Promises[i], err = chosen[i].run(ctx, opt, end); err != nil {
			return fmt.Errorf("promise %d (%s): %w", chosen[i].number, chosen[i].name, err)
		}
		if opt.Done != nil {
			opt.Done(r.Promises[i])
		}
		return nil
	}
	var err error
	if opt.Time > 0 {
		err = inTurn(chosen, begin.Add(opt.Time), check)
	} else {
		err = atOnce(chosen, check)
	}
	if err != nil {
		return r, err
	}
	r.Seconds = rounded(time.Since(begin))
	return r, nil
}

// inTurn checks one after the other, since what is measured is to be measured alone.
// Each may take all the time that the others will not need; when there is too little
// for all, each gets a part of it by its need. Those that need most come last, and have
// what the others did not use.
func inTurn(chosen []chapter, end time.Time, check func(i int, end time.Time) error) error {
	order := make([]int, len(chosen))
	rest := time.Duration(0)
	for i, c := range chosen {
		order[i] = i
		rest += c.need
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(chosen[a].need, chosen[b].need) })
	for _, i := range order {
		left, need := time.Until(end), chosen[i].need
		part := max(left-(rest-need), time.Duration(float64(left)*float64(need)/float64(rest)))
		rest -= need
		if err := check(i, time.Now().Add(part)); err != nil {
			return err
		}
	}
	return nil
}

// atOnce checks all at the same time, which is short: most of them wait.
func atOnce(chosen []chapter, check func(i int, end time.Time) error) error {
	var group errgroup.Group
	for i := range chosen {
		group.Go(func() error { return check(i, time.Time{}) })
	}
	return group.Wait()
}

// run checks a promise until end, or in the short form when that is zero.
func (c chapter) run(ctx context.Context, opt Options, end time.Time) (Promise, error) {
	dir := filepath.Join(opt.Dir, fmt.Sprint(c.number))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Promise{}, err
	}
	t := &trial{exe: opt.Exe, self: opt.Self, dir: dir, rng: rand.New(rand.NewPCG(opt.Seed, uint64(c.number))), begin: time.Now(), end: end, ctx: ctx}
	err := c.check(t)
	if errors.Is(err, errElsewhere) {
		return Promise{Number: c.number, Name: c.name, Kept: true, Skipped: err.Error()}, nil
	}
	if err != nil {
		return Promise{}, err
	}
	if err := ctx.Err(); err != nil {
		return Promise{}, err
	}
	return Promise{Number: c.number, Name: c.name, Kept: len(t.broken) == 0, Full: !end.IsZero() && !t.cut, Seconds: rounded(time.Since(t.begin)), Figures: t.figures, Broken: t.broken}, nil
}

func rounded(d time.Duration) float64 {
	return float64(d.Round(10*time.Millisecond)) / float64(time.Second)
}

// trial is the check of one promise. Its context is kept in it because every step
// of every check needs it.
type trial struct {
	ctx        context.Context
	exe, self  string
	dir        string
	begin, end time.Time // end is zero in the short form

	mu      sync.Mutex // guards what follows
	cut     bool       // there was no time for the full measure
	rng     *rand.Rand
	figures []Figure
	broken  []string
}

// goal picks how many times something is to be done.
func (t *trial) goal(short, long int) int {
	if t.end.IsZero() {
		return short
	}
	return long
}

// on reports whether there is time for more. It is asked only where there is more to
// do, so a no means that the full measure is not reached.
func (t *trial) on() bool {
	if t.ctx.Err() == nil && (t.end.IsZero() || time.Now().Before(t.end)) {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cut = true
	return false
}

// spread does something n times on as many lanes at once, until the time is over,
// and returns how often it was done.
func (t *trial) spread(lanes, n int, do func(lane, i int)) int {
	var wg sync.WaitGroup
	var mu sync.Mutex // guards next
	next := 0
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		if next >= n || !t.on() {
			return 0, false
		}
		next++
		return next - 1, true
	}
	for lane := range lanes {
		wg.Go(func() {
			for i, ok := take(); ok; i, ok = take() {
				do(lane, i)
			}
		})
	}
	wg.Wait()
	return next
}

// draw returns a number from the seed.
func (t *trial) draw(n int) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rng.IntN(n)
}

// count adds to a figure; figures are shown in the order they are first counted.
func (t *trial) count(name string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.figures {
		if t.figures[i].Name == name {
			t.figures[i].Value += int64(n)
			return
		}
	}
	t.figures = append(t.figures, Figure{name, int64(n)})
}

// most keeps the largest value of a figure.
func (t *trial) most(name string, n int) {
	t.count(name, 0)
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.figures {
		if t.figures[i].Name == name {
			t.figures[i].Value = max(t.figures[i].Value, int64(n))
		}
	}
}

// breaks says that the promise was broken.
func (t *trial) breaks(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.broken) < 5 {
		t.broken = append(t.broken, fmt.Sprintf(format, args...))
	}
}
