package audit

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/usher-mcp/usher/vault"
)

// Defaults of [Options].
const (
	DefaultEvery = time.Second
	DefaultBatch = 512
	DefaultRoom  = 20_000
)

// Options steer a [Log]. The zero value works.
type Options struct {
	// Every is how long a record waits for others before it is written: what a crash
	// may lose. Default 1s.
	Every time.Duration
	// Batch is how many records are written at once at most before that time. Default
	// 512.
	Batch int
	// Room is how many records wait while the store is away. Further ones are counted
	// and lost. Default 20,000.
	Room int
	// Keep is how long records are kept; older ones are removed once an hour. 0:
	// permanently.
	Keep time.Duration
	// Key returns the key that authenticates blocks, see [LoadKey]. While the
	// key of the store cannot be had, blocks are written without. Default: none are
	// authenticated.
	Key func(ctx context.Context) (Key, error)
	// Log hears when records are lost. Default: discard.
	Log *slog.Logger
}

// Log writes the audit log of one process: a chain of [Block]s. Adding to it
// costs no more than putting the record in a list; everything else is done in the
// background, once a second. A process that is killed loses at most the records of
// the last second (Every), and those that waited for a store that was away.
type Log struct {
	store vault.Audits
	opt   Options

	mu      sync.Mutex // guards what follows
	waiting []Record
	spare   []Record // room of an earlier list
	lost    int64
	running bool
	closed  bool

	first chan struct{} // one place: something waits
	full  chan struct{} // one place: a batch waits
	stop  chan struct{}
	done  chan struct{}

	written, dropped atomic.Int64

	// What follows belongs to the writing goroutine.
	key     Key
	head    blockHeader       // the block that was written last
	last    string            // its hash
	unsaved *vault.AuditEntry // was handed to the store, which did not say that it has it
	trimmed time.Time
}

// NewLog returns a log that is kept in store. Close it before the store.
func NewLog(store vault.Audits, opt *Options) *Log {
	t := &Log{
		store: store, first: make(chan struct{}, 1), full: make(chan struct{}, 1),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	if opt != nil {
		t.opt = *opt
	}
	t.opt.Every = orPositive(t.opt.Every, DefaultEvery)
	t.opt.Batch = orPositive(t.opt.Batch, DefaultBatch)
	t.opt.Room = orPositive(t.opt.Room, DefaultRoom)
	if t.opt.Log == nil {
		t.opt.Log = slog.New(slog.DiscardHandler)
	}
	t.head = blockHeader{Writer: rand.Text(), Process: vault.NewHolder()}
	return t
}

func orPositive[T int | time.Duration](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

// Stats counts what a log did.
type Stats struct {
	Written int64 // records that the store has
	Lost    int64 // records for which there was no room
	Waiting int   // records that are not written yet
}

// Stats returns the counts so far.
func (t *Log) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Stats{Written: t.written.Load(), Lost: t.dropped.Load(), Waiting: len(t.waiting)}
}

// Add notes a record. It never waits and never fails; after Close it does nothing.
func (t *Log) Add(a Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return
	case len(t.waiting) >= t.opt.Room:
		t.lost++
		t.dropped.Add(1)
		return
	}
	if !t.running {
		t.running = true
		go t.run()
	}
	t.waiting = append(t.waiting, a)
	switch len(t.waiting) {
	case 1:
		poke(t.first)
	case t.opt.Batch:
		poke(t.full)
	}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// closeTimeout bounds how long the last block may take.
const closeTimeout = 5 * time.Second

// Close writes what waits and ends the chain. A log to which nothing was added
// leaves nothing behind.
func (t *Log) Close() {
	t.mu.Lock()
	was, running := t.closed, t.running
	t.closed = true
	t.mu.Unlock()
	if was {
		return
	}
	close(t.stop)
	if running {
		<-t.done
	}
}

// run writes blocks until the log is closed. While the store is away it asks
// again, more and more rarely.
func (t *Log) run() {
	defer close(t.done)
	wait := t.opt.Every
	for {
		select {
		case <-t.stop:
			t.end()
			return
		case <-t.first:
		}
		timer := time.NewTimer(wait)
		select {
		case <-t.full:
		case <-timer.C:
		case <-t.stop:
			timer.Stop()
			t.end()
			return
		}
		timer.Stop()
		began := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		err := t.flush(ctx, false)
		cancel()
		wait = max(t.opt.Every-time.Since(began), 0) // what came meanwhile has waited since
		if err != nil {
			t.opt.Log.Warn("the audit log could not be written; it is kept and tried again", "error", err)
			poke(t.first)
			wait = min(4*t.opt.Every, 10*time.Second)
		}
	}
}

// end writes the last block.
func (t *Log) end() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := t.flush(ctx, true); err != nil {
		n := t.Stats().Waiting
		if t.unsaved != nil {
			n += t.head.Count
		}
		t.opt.Log.Error("the end of the audit log could not be written and is lost", "acts", n, "error", err)
	}
}

// flush writes what waits, block by block; at the end also a last block. What is
// added meanwhile waits for others again unless it fills a block: under load a
// block would otherwise be as small as the store is fast.
func (t *Log) flush(ctx context.Context, end bool) error {
	for first := true; ; first = false {
		if err := t.save(ctx); err != nil {
			return err
		}
		if err := t.loadKey(ctx); err != nil {
			return err
		}
		records, lost := t.take(first || end)
		last := end && len(records) < t.opt.Batch
		if len(records) == 0 && !last {
			break
		}
		if err := t.make(records, lost, last); err != nil {
			return err
		}
		if last {
			return t.save(ctx)
		}
	}
	return t.trim(ctx)
}

// take returns the records of the next block; unless few will do, none when they do
// not fill it.
func (t *Log) take(few bool) (records []Record, lost int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := min(len(t.waiting), t.opt.Batch)
	if n < t.opt.Batch && !few {
		if n > 0 {
			poke(t.first)
		}
		return nil, 0
	}
	records, lost = t.waiting[:n], t.lost
	t.lost = 0
	if rest := t.waiting[n:]; len(rest) > t.opt.Batch {
		t.waiting = rest // the store was away: too much to be carried over
	} else {
		// records are being read now; those before them are not any more.
		t.waiting, t.spare = append(t.spare[:0], rest...), records
	}
	if cap(t.spare) > 4*t.opt.Batch {
		t.spare = nil
	}
	return records, lost
}

// make turns records into the block that is saved next.
func (t *Log) make(records []Record, lost int64, end bool) error {
	h := t.head
	h.Number, h.Prev, h.Count, h.Lost, h.End = h.Number+1, t.last, len(records), lost, end
	e, err := h.entry(time.Now(), records, t.key)
	if err != nil {
		return err
	}
	t.head, t.unsaved = h, &e
	return nil
}

// save hands the store the block that it does not have yet. When the answer was
// lost it may get the same block twice, which readers notice.
func (t *Log) save(ctx context.Context) error {
	if t.unsaved == nil {
		return nil
	}
	if err := t.store.Append(ctx, *t.unsaved); err != nil {
		return err
	}
	t.last, _, _ = strings.Cut(t.unsaved.Outcome, codeSeparator)
	t.written.Add(int64(t.head.Count))
	t.unsaved = nil
	return nil
}

// loadKey gets the key that authenticates blocks. A block is rather written without
// than lost.
func (t *Log) loadKey(ctx context.Context) error {
	if t.opt.Key == nil || t.key.key != nil {
		return nil
	}
	key, err := t.opt.Key(ctx)
	if errors.Is(err, vault.ErrNoKey) || errors.Is(err, vault.ErrWrongKey) || errors.Is(err, vault.ErrCorrupt) {
		t.opt.Log.Warn("a block of the audit log is written without an authentication code", "error", err)
		return nil
	}
	if err == nil {
		t.key = key
	}
	return err
}

// trimEvery is how often a process that writes removes what is too old.
const trimEvery = time.Hour

func (t *Log) trim(ctx context.Context) error {
	if t.opt.Keep <= 0 || time.Since(t.trimmed) < trimEvery {
		return nil
	}
	t.trimmed = time.Now()
	if _, err := t.store.TrimAudit(ctx, time.Now().Add(-t.opt.Keep)); err != nil {
		t.opt.Log.Warn("old records could not be removed from the audit log", "error", err)
	}
	return nil
}
