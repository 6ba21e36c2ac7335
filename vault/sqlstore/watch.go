package sqlstore

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/vault"
)

// notifyTimeout bounds the telling after a commit; the write itself is done.
const notifyTimeout = 2 * time.Second

// watcher turns changes, ours and others', into hints for subscribers. Ours are
// told at once by the writer; others' come from a feed that runs only while
// somebody listens.
type watcher struct {
	changes  event.Bus[vault.Change]
	starting chan struct{} // holds a token while nobody starts or stops the feed
	running  bool          // guarded by the token
	stop     context.CancelFunc
	feeds    sync.WaitGroup

	mu    sync.Mutex // guards known
	known map[vault.Key]int64
}

// feed tells when others may have changed something.
type feed interface {
	// next waits; it returns what changed, or all true when everything has to
	// be compared. An error ends only this wait.
	next(ctx context.Context) (change vault.Change, all bool, err error)
	close()
}

// Watch implements vault.Records.
func (s *Store) Watch(ctx context.Context) (*event.Subscription[vault.Change], error) {
	w := &s.watch
	select {
	case <-w.starting:
		defer func() { w.starting <- struct{}{} }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.closed.Load() {
		return nil, vault.ErrClosed
	}
	if !w.running {
		if err := s.startFeed(ctx); err != nil {
			return nil, s.fail(ctx, "watch", err)
		}
	}
	return w.changes.Subscribe(0), nil
}

// startFeed opens the feed before it takes stock, so that nothing falls between
// the two.
func (s *Store) startFeed(ctx context.Context) error {
	w := &s.watch
	f, err := s.feed(ctx)
	if err != nil {
		return err
	}
	stock, err := s.stock(ctx)
	if err != nil {
		f.close()
		return err
	}
	w.mu.Lock()
	w.known = stock
	w.mu.Unlock()
	feedCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	w.running, w.stop = true, stop
	w.feeds.Go(func() {
		defer stop()
		defer f.close()
		s.follow(feedCtx, f)
	})
	return nil
}

// follow passes the feed on until nobody listens any more.
func (s *Store) follow(ctx context.Context, f feed) {
	for ctx.Err() == nil && !s.watch.idle() {
		change, all, err := f.next(ctx)
		switch {
		case err != nil:
			// A hint that could not be had now comes with a later one.
		case all:
			s.compare(ctx)
		case change.Key != vault.Key{}:
			s.watch.tell(change)
		}
	}
}

// idle says whether the feed may end, and if so makes the next Watch start a
// new one.
func (w *watcher) idle() bool {
	if w.changes.Subscribers() > 0 {
		return false
	}
	select {
	case <-w.starting:
		defer func() { w.starting <- struct{}{} }()
	default: // somebody is about to subscribe
		return false
	}
	if w.changes.Subscribers() > 0 {
		return false
	}
	w.running = false
	return true
}

// stock lists what there is.
func (s *Store) stock(ctx context.Context) (map[vault.Key]int64, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT kind, principal, name, version FROM usher_records`)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err has the last word
	stock := make(map[vault.Key]int64)
	for rows.Next() {
		r := make(row, 4)
		if err := rows.Scan(&r[0], &r[1], &r[2], &r[3]); err != nil {
			return nil, err
		}
		stock[r.key()] = r.number(3)
	}
	return stock, rows.Err()
}

// compare tells of everything that differs from what was last known.
func (s *Store) compare(ctx context.Context) {
	stock, err := s.stock(ctx)
	if err != nil {
		return // compared again at the next occasion
	}
	w := &s.watch
	var gone []vault.Key
	w.mu.Lock()
	for key := range w.known {
		if _, ok := stock[key]; !ok {
			gone = append(gone, key)
		}
	}
	w.mu.Unlock()
	for _, key := range gone {
		w.tell(vault.Change{Key: key})
	}
	for key, version := range stock {
		w.tell(vault.Change{Key: key, Version: version})
	}
}

// tell publishes the change unless it is known.
func (w *watcher) tell(c vault.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known == nil {
		return // nobody has ever watched
	}
	old, there := w.known[c.Key]
	if c.Version == old || (c.Version == 0 && !there) {
		return
	}
	if c.Version == 0 {
		delete(w.known, c.Key)
	} else {
		w.known[c.Key] = c.Version
	}
	w.changes.Publish(c)
}

// changed is called after a commit: subscribers here hear at once, others
// through the database where it can tell them.
func (s *Store) changed(ctx context.Context, c vault.Change) {
	s.watch.tell(c)
	if s.notify == nil {
		return
	}
	var payload strings.Builder
	enc := json.NewEncoder(&payload)
	enc.SetEscapeHTML(false) // keeps the longest key within what a notification holds
	if err := enc.Encode(notice{s.self, c.Kind, c.Principal, c.Name, c.Version}); err != nil {
		return // strings and a number always encode
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), notifyTimeout)
	defer cancel()
	// The write is committed and the row is the truth; who misses the hint
	// compares again later.
	_ = s.notify(ctx, payload.String())
}

// notice is a change on its way through the database. It never holds data.
type notice struct {
	Sender    string `json:"s"`
	Kind      string `json:"k"`
	Principal string `json:"p"`
	Name      string `json:"n"`
	Version   int64  `json:"v"`
}

// close ends the feed and all subscriptions.
func (w *watcher) close() {
	<-w.starting
	if w.running {
		w.stop()
	}
	w.starting <- struct{}{}
	w.changes.Close()
	w.feeds.Wait()
}
