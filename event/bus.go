package event

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
)

// DefaultBacklog is how many unread events a subscription keeps when its
// subscriber asked for no other number.
const DefaultBacklog = 256

// ErrClosed is what [Subscription.Next] returns once the subscription or its
// bus is closed and everything that was waiting has been read.
var ErrClosed = errors.New("event: subscription closed")

// Bus hands every published value to every subscription. The zero Bus is
// ready to use; all methods may be called from any goroutine. A Bus must not
// be copied after its first use.
type Bus[T any] struct {
	mu     sync.Mutex // guards subs, closed
	subs   []*Subscription[T]
	closed bool
}

// Publish appends v to every subscription's backlog and returns at once; a
// full backlog drops its oldest value. Publishing on a closed bus does nothing.
func (b *Bus[T]) Publish(v T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.subs {
		s.push(v)
	}
}

// Subscribe returns a subscription to everything published from now on. It
// keeps at most backlog unread values ([DefaultBacklog] when backlog is not
// positive). The caller must Close it. On a closed bus the subscription is
// closed from the start.
func (b *Bus[T]) Subscribe(backlog int) *Subscription[T] {
	if backlog <= 0 {
		backlog = DefaultBacklog
	}
	s := &Subscription[T]{bus: b, ring: make([]T, backlog), wake: make(chan struct{}, 1), done: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		s.finish()
		return s
	}
	b.subs = append(b.subs, s)
	return s
}

// Subscribers says how many subscriptions are open, so that a publisher whose
// news are costly to gather can rest while nobody listens.
func (b *Bus[T]) Subscribers() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.subs)
}

// Close ends all subscriptions; what they have not read yet stays readable.
// It may be called more than once.
func (b *Bus[T]) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, s := range b.subs {
		s.finish()
	}
	b.subs = nil
}

func (b *Bus[T]) remove(s *Subscription[T]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.subs = slices.DeleteFunc(b.subs, func(o *Subscription[T]) bool { return o == s })
}

// Subscription is one reader's view of a [Bus]. One goroutine reads at a time.
type Subscription[T any] struct {
	bus  *Bus[T]
	wake chan struct{} // holds a token when a value may be waiting
	done chan struct{}
	once sync.Once

	mu   sync.Mutex // guards ring, head, n, lost; taken under bus.mu, never around it
	ring []T
	head int // index of the oldest value
	n    int // how many values wait
	lost int
}

// Next waits for the next event and also says how many were lost just before
// it because the backlog was full. It returns ctx's error when ctx ends first
// and [ErrClosed] after the last event of a closed subscription.
func (s *Subscription[T]) Next(ctx context.Context) (v T, lost int, err error) {
	for {
		if v, lost, ok := s.pop(); ok {
			return v, lost, nil
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return v, 0, ctx.Err()
		case <-s.done:
			// A value may have arrived between the look above and the end.
			if v, lost, ok := s.pop(); ok {
				return v, lost, nil
			}
			return v, 0, ErrClosed
		}
	}
}

// All ranges over the events, each with the number lost just before it, until
// ctx ends or the subscription is closed. Leaving the loop does not close the
// subscription.
func (s *Subscription[T]) All(ctx context.Context) iter.Seq2[T, int] {
	return func(yield func(T, int) bool) {
		for {
			v, lost, err := s.Next(ctx)
			if err != nil || !yield(v, lost) {
				return
			}
		}
	}
}

// Close ends the subscription. It may be called more than once and from any
// goroutine; a waiting Next returns.
func (s *Subscription[T]) Close() {
	s.bus.remove(s)
	s.finish()
}

func (s *Subscription[T]) finish() { s.once.Do(func() { close(s.done) }) }

// push never blocks: the lock is held only by code that moves one value.
func (s *Subscription[T]) push(v T) {
	s.mu.Lock()
	if s.n == len(s.ring) {
		s.head = (s.head + 1) % len(s.ring)
		s.n--
		s.lost++
	}
	s.ring[(s.head+s.n)%len(s.ring)] = v
	s.n++
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Subscription[T]) pop() (v T, lost int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n == 0 {
		return v, 0, false
	}
	var zero T
	v, s.ring[s.head] = s.ring[s.head], zero // let go of what was read
	s.head = (s.head + 1) % len(s.ring)
	s.n--
	lost, s.lost = s.lost, 0
	return v, lost, true
}
