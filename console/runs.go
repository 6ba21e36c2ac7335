package console

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"slices"
	"sync"
	"time"
)

// Bounds of the calls that are tried from a page.
const (
	maxRuns    = 16 // remembered
	maxRunning = 4
)

var errTooMany = errors.New("four calls from this console are already in progress; wait for one to finish, or cancel it")

// run is a call that was tried from a page. It goes on when the page is left, and a
// page that is loaded again does not repeat it.
type run struct {
	id, account, tool string
	form              url.Values // as it was filled in
	began             time.Time
	cancel            context.CancelFunc

	mu     sync.Mutex // guards what follows
	done   bool
	took   time.Duration
	result []byte
	err    error
}

// runs are the calls of this console, oldest first.
type runs struct {
	mu   sync.Mutex // guards list
	list []*run
}

// start begins a call in the background.
func (c *Console) start(account, tool string, form url.Values, args []byte) (*run, error) {
	ctx, cancel := context.WithCancel(c.life)
	r := &run{id: rand.Text(), account: account, tool: tool, form: form, began: time.Now(), cancel: cancel}
	if err := c.runs.add(r); err != nil {
		cancel()
		return nil, err
	}
	c.work.Go(func() {
		defer cancel()
		result, err := c.world.Call(ctx, account, tool, args)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.done, r.took, r.result, r.err = true, time.Since(r.began), result, err
	})
	return r, nil
}

func (s *runs) add(r *run) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	running := 0
	for _, o := range s.list {
		if !o.ended() {
			running++
		}
	}
	if running >= maxRunning {
		return errTooMany
	}
	if len(s.list) >= maxRuns {
		i := slices.IndexFunc(s.list, (*run).ended)
		s.list = slices.Delete(s.list, i, i+1)
	}
	s.list = append(s.list, r)
	return nil
}

func (r *run) ended() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.done
}

// find returns a call of this very tool, nil when there is none.
func (s *runs) find(id, account, tool string) *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.list {
		if r.id == id && r.account == account && r.tool == tool {
			return r
		}
	}
	return nil
}
