package surface

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
)

// How long a server that could not be listed is left alone, and how often a list
// that may be out of date is read again in the background.
const (
	retryAfter   = 10 * time.Second
	refreshEvery = 30 * time.Second
)

// readings are lists being read from servers in the background, one at a time per
// list, for all who want it.
type readings struct {
	mu  sync.Mutex // guards all and their fields but done
	all map[readingKey]*reading
}

type readingKey struct {
	key    policy.Key
	method string
}

type reading struct {
	done      chan struct{} // closed when it has ended
	ended     time.Time     // zero while it runs
	err       error
	abandoned bool      // somebody waited for it in vain: nobody else does
	again     bool      // the list has changed meanwhile
	begun     bool      // the server has been asked, or is about to be
	paid      time.Time // see nextTurn
}

// now, as the pause of read, means that the list has changed this moment.
const now time.Duration = -1

// read begins to read a list, or joins the reading in flight. It is nil when the
// list was read, or could not be, less than pause ago.
func (s *Surface) read(k policy.Key, method string, pause time.Duration) *reading {
	s.readings.mu.Lock()
	defer s.readings.mu.Unlock()
	id := readingKey{k, method}
	r := &reading{done: make(chan struct{})}
	if old := s.readings.all[id]; old != nil {
		switch {
		case old.ended.IsZero():
			old.again = old.again || pause == now && old.begun
			return old
		case time.Since(old.ended) < pause:
			return nil
		}
		r.paid = old.paid
	}
	var wait time.Duration
	if pause == now {
		r.paid, wait = nextTurn(r.paid, time.Now())
	}
	if !s.spawn(func() { s.finish(id, r, s.readAfter(wait, id, r)) }) {
		return nil
	}
	s.readings.put(id, r)
	return r
}

// nextTurn says how long a reading that a server asks for has to wait: a few in a row
// do not, more than that one interval each. paid is until when turns are used up.
func nextTurn(paid, at time.Time) (time.Time, time.Duration) {
	if paid.Before(at) {
		paid = at
	}
	paid = paid.Add(limit.RelistInterval)
	return paid, max(0, paid.Sub(at)-limit.RelistBurst*limit.RelistInterval)
}

// readAfter reads a list when its turn has come. What is said to have changed until
// then needs no further reading.
func (s *Surface) readAfter(wait time.Duration, id readingKey, r *reading) error {
	if wait > 0 {
		turn := time.NewTimer(wait)
		defer turn.Stop()
		select {
		case <-turn.C:
		case <-s.life.Done():
			return context.Cause(s.life)
		}
	}
	s.readings.mu.Lock()
	r.begun = true
	s.readings.mu.Unlock()
	return s.readNow(s.life, id.key, id.method)
}

// maxReadings bounds what is remembered about readings that have ended.
const maxReadings = 4096

// put needs mu.
func (r *readings) put(id readingKey, one *reading) {
	if r.all == nil {
		r.all = map[readingKey]*reading{}
	}
	if len(r.all) >= maxReadings {
		maps.DeleteFunc(r.all, func(_ readingKey, old *reading) bool { return !old.ended.IsZero() })
	}
	r.all[id] = one
}

func (s *Surface) finish(id readingKey, r *reading, err error) {
	s.readings.mu.Lock()
	r.ended, r.err = time.Now(), err
	again := r.again
	s.readings.mu.Unlock()
	close(r.done)
	if again {
		s.read(id.key, id.method, now)
	}
	s.wake()
}

// readNow reads a list. The tools come first: without them nothing is remembered
// of a server.
func (s *Surface) readNow(ctx context.Context, k policy.Key, method string) error {
	who := policy.As(k.Principal) // it is remembered for all of them, and shown to each through the gate
	if _, err := s.gate.Tools(ctx, who, k); err != nil || method == mcp.MethodToolsList {
		return err
	}
	return s.gate.Refresh(ctx, who, k, method)
}

// forget lets the lists of a server be read again at once, as after a login.
func (r *readings) forget(server, account string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, old := range r.all {
		if id.key.Server == server && id.key.Account == account && !old.ended.IsZero() {
			delete(r.all, id)
		}
	}
}

// learn sees to it that a list of all sources is known, as far as that is possible
// in a moment: servers never seen before are asked, all at once, and waited for
// until all have answered, or half of all servers are known and the others keep
// silent for as long again. What comes later is told as a change of the list.
func (s *Surface) learn(ctx context.Context, sources []source, method string) {
	var open []*reading
	known := 0
	for i := range sources {
		src := &sources[i]
		if !src.lacks(method) {
			if src.known && !src.Off {
				known++
			}
			if src.doubtful(s.started) {
				s.read(src.key, method, refreshEvery)
			}
			continue
		}
		if r := s.read(src.key, method, retryAfter); r != nil && !s.readings.isAbandoned(r) {
			open = append(open, r)
		}
	}
	if len(open) > 0 {
		s.await(ctx, open, known)
	}
}

func (r *readings) isAbandoned(one *reading) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return one.abandoned
}

// fewUnknown is how long servers never seen are waited for where most are known: an
// agent must not wait at every start for the one that hangs.
const fewUnknown = 10 * time.Millisecond

// await waits for readings, beside which known servers need none; those it gives up
// nobody waits for again.
func (s *Surface) await(ctx context.Context, open []*reading, known int) {
	began := time.Now()
	ended := make(chan struct{}, len(open))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(stop)
	for _, r := range open {
		wg.Go(func() {
			select {
			case <-r.done:
				ended <- struct{}{}
			case <-stop:
			}
		})
	}
	patience := maxWait
	if known > len(open) {
		patience = fewUnknown
	}
	quiet := time.NewTimer(patience)
	defer quiet.Stop()
	for n := 1; n <= len(open); n++ {
		select {
		case <-ended:
		case <-ctx.Done():
			return
		case <-quiet.C:
			s.readings.abandon(open)
			return
		}
		if known <= len(open) && 2*(known+n) >= known+len(open) {
			quiet.Reset(min(max(s.opt.Quiet, time.Since(began)), maxWait))
		}
	}
}

// maxWait bounds how long a list waits for servers in any case.
const maxWait = 20 * time.Second

func (r *readings) abandon(open []*reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range open {
		one.abandoned = one.ended.IsZero()
	}
}

// askNamed waits for the list of the server that a name is of, and reports whether it
// did. Lists go out without a server that is slow, but its names are not wrong ones.
func (s *Surface) askNamed(ctx context.Context, snap *snapshot, method, name string) (asked bool) {
	for i := range snap.sources {
		src := &snap.sources[i]
		if !src.lacks(method) || !strings.HasPrefix(name, s.names.ShownPart(src.Name, src.Account)) {
			continue
		}
		if r := s.read(src.key, method, retryAfter); r != nil {
			select {
			case <-r.done:
			case <-ctx.Done():
			}
		}
		asked = true
	}
	return asked
}

// ask reads the tools of one server that was named, and waits for it.
func (s *Surface) ask(ctx context.Context, src *source) error {
	r := s.read(src.key, mcp.MethodToolsList, 0)
	if r == nil {
		return context.Canceled
	}
	select {
	case <-r.done:
		s.readings.mu.Lock()
		defer s.readings.mu.Unlock()
		return r.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
