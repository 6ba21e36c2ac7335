package console

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/usher-mcp/usher/event"
)

// leastPause keeps a flood of events from becoming a flood of pages.
const leastPause = 200 * time.Millisecond

// serveEvents keeps one page up to date: whenever a region of it reads differently,
// all of that region is sent, so that a browser which missed some has the truth with
// the next.
func (c *Console) serveEvents(w http.ResponseWriter, r *http.Request) {
	ctx, s, done := openStream(c, w, r)
	if s == nil {
		return
	}
	defer done()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	out := &stream{w: w, control: http.NewResponseController(w)}
	_ = c.followPage(ctx, out, r, s) // the browser has gone, or the console is closed
}

// openStream counts a stream of a session, which ends with the console. The session is nil
// when the request was refused; otherwise the caller calls done.
func openStream(c *Console, w http.ResponseWriter, r *http.Request) (ctx context.Context, s *session, done func()) {
	if s = c.door.session(r); s == nil {
		refuse(w, consoleStyle, http.StatusForbidden, howToEnter)
		return nil, nil, nil
	}
	if c.streams.Add(1) > maxStreams {
		c.streams.Add(-1)
		refuse(w, consoleStyle, http.StatusTooManyRequests, "The console is open too many times.")
		return nil, nil, nil
	}
	if c.life.Err() != nil {
		c.streams.Add(-1)
		refuse(w, consoleStyle, http.StatusServiceUnavailable, "usher is shutting down.")
		return nil, nil, nil
	}
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(c.life, cancel)
	return ctx, s, func() {
		stop()
		cancel()
		c.streams.Add(-1)
	}
}

// followPage writes until ctx ends.
func (c *Console) followPage(ctx context.Context, out *stream, r *http.Request, s *session) error {
	sub := c.world.Subscribe() // before the first look, so that nothing falls between
	defer sub.Close()
	at := inside(r.URL.Query().Get("at"))
	last := map[string]string{}
	alive := time.Now()
	if err := out.write(": hello\n\n"); err != nil {
		return err
	}
	for {
		began := time.Now()
		if c.door.session(r) == nil {
			return out.write("event: over\ndata: {}\n\n")
		}
		sent, err := c.sendRegions(ctx, out, r, s, at.String(), last)
		if err != nil {
			return err
		}
		switch {
		case sent:
			alive = time.Now()
		case time.Since(alive) > c.opt.KeepAlive:
			alive = time.Now()
			if err := out.write(": still here\n\n"); err != nil {
				return err
			}
		}
		if err := c.pause(ctx, sub.Next, began); err != nil {
			return err
		}
	}
}

// pause waits for news, or for the next tick, and at least a little.
func (c *Console) pause(ctx context.Context, next func(context.Context) (event.Event, int, error), began time.Time) error {
	wait, cancel := context.WithDeadline(ctx, began.Add(c.opt.Tick))
	defer cancel()
	_, _, err := next(wait)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && !errors.Is(err, context.DeadlineExceeded):
		return err // the world is closed
	}
	rest := time.NewTimer(time.Until(began.Add(min(leastPause, c.opt.Tick))))
	defer rest.Stop()
	select {
	case <-rest.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// region is a part of a page that changes by itself.
type region struct {
	ID   string `json:"id"`
	HTML string `json:"html"`
}

func (c *Console) sendRegions(ctx context.Context, out *stream, r *http.Request, s *session, at string, last map[string]string) (sent bool, err error) {
	v := c.screen(ctx, r, s, inside(at), nil)
	for _, reg := range v.regions() {
		if last[reg.ID] == reg.HTML {
			continue
		}
		last[reg.ID] = reg.HTML
		data, err := json.Marshal(reg)
		if err != nil {
			return sent, err
		}
		if err := out.write("event: region\ndata: " + string(data) + "\n\n"); err != nil {
			return sent, err
		}
		sent = true
	}
	return sent, nil
}
