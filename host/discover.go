package host

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/usher-mcp/usher/internal/jsonx"
)

// Row is one tool of one server, or the reason why a server has none to show.
type Row struct {
	Server, Account string
	Tool            string // "" in a row that only says Err
	Schema          []byte // the raw definition
	Stale           bool   // last known: the server could not be asked now
	// SchemaChanged: the tool differs from its pin. Blocked: so it cannot be called.
	// Both are filled in by the package that has the pins.
	SchemaChanged, Blocked bool
	Err                    error
}

// Discover yields the tools of many servers as they come: all are asked at once,
// and none waits for another. Nil keys stand for every registered server that is
// not disabled. Leaving the loop ends it.
func (h *Host) Discover(ctx context.Context, keys []Key) iter.Seq[Row] {
	return func(yield func(Row) bool) {
		for a := range h.ask(ctx, keys) {
			for _, row := range a.rows() {
				if !yield(row) {
					return
				}
			}
		}
	}
}

// Gather is Discover for callers that want one answer: it returns when all servers
// have answered, or when half of them have and no other did for quiet. Those still
// missing are there with their last known tools, marked as stale, and with
// [context.DeadlineExceeded]. A quiet of 0 waits for all. Rows are sorted by
// server.
func (h *Host) Gather(ctx context.Context, keys []Key, quiet time.Duration) []Row {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if keys == nil {
		keys = h.allKeys()
	}
	missing := map[Key]bool{}
	for _, k := range keys {
		missing[k.normal()] = true
	}
	var rows []Row
	timer := time.AfterFunc(time.Hour, stop)
	timer.Stop()
	defer timer.Stop()
	for a := range h.ask(ctx, keys) {
		if ctx.Err() != nil {
			break
		}
		rows = append(rows, a.rows()...)
		delete(missing, a.key.normal())
		if quiet > 0 && len(missing)*2 <= len(keys) {
			timer.Reset(quiet)
		}
	}
	for k := range missing {
		a := answer{key: k, err: &Error{Op: "list", Server: k.Server, Err: context.DeadlineExceeded, Advice: "it is still being tried; ask again"}}
		if c, ok := h.Cached(k); ok {
			c.Stale = true
			a.catalog = c
		}
		rows = append(rows, a.rows()...)
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return compareNames(a.Server, a.Account, b.Server, b.Account) })
	return rows
}

// answer is what one server said.
type answer struct {
	key     Key
	catalog Catalog
	err     error
}

func (a answer) rows() []Row {
	var rows []Row
	err := a.err
	if err == nil {
		err = a.catalog.Problem
	}
	// A list that was just read is not the last known one, even if the server said
	// meanwhile that it changes: many do so when they start.
	stale := a.catalog.Stale && err != nil
	if err != nil {
		rows = append(rows, Row{Server: a.key.Server, Account: a.key.Account, Err: err, Stale: stale})
	}
	for _, def := range a.catalog.Tools {
		rows = append(rows, Row{
			Server: a.key.Server, Account: a.key.Account, Stale: stale,
			Tool: jsonx.GetText(def, "name"), Schema: def,
		})
	}
	return rows
}

// ask yields the answers of servers in the order in which they come.
func (h *Host) ask(ctx context.Context, keys []Key) iter.Seq[answer] {
	return func(yield func(answer) bool) {
		if keys == nil {
			keys = h.allKeys()
		}
		ctx, stop := context.WithCancel(ctx)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer stop() // callers that wait for a server give up; the dial goes on
		answers := make(chan answer, len(keys))
		for _, k := range keys {
			wg.Go(func() {
				c, err := h.Tools(ctx, k)
				if err == nil && c.Stale && c.Problem == nil {
					c, err = h.Tools(ctx, k) // it changed while it was read
				}
				answers <- answer{k, c, err}
			})
		}
		for range keys {
			if !yield(<-answers) {
				return
			}
		}
	}
}

// allKeys are the servers that may be asked, in order.
func (h *Host) allKeys() []Key {
	h.mu.Lock()
	defer h.mu.Unlock()
	keys := make([]Key, 0, len(h.servers))
	for name, reg := range h.servers {
		if !reg.srv.Disabled {
			keys = append(keys, Key{Server: name})
		}
	}
	slices.SortFunc(keys, func(a, b Key) int { return compareNames(a.Server, "", b.Server, "") })
	return keys
}
