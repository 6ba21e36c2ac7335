package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// Bounds of the streams.
const (
	maxStreams   = 16
	writeTimeout = 10 * time.Second // for a browser that does not read
)

// serveEvents sends the page as server-sent events: all of it whenever something
// changed, so that a browser which missed some news has the truth with the next.
func (c *Consent) serveEvents(w http.ResponseWriter, r *http.Request) {
	if !c.door.knows(r) {
		refuse(w, consentStyle, http.StatusForbidden, "This page opens with the link that usher prints.")
		return
	}
	defer c.streams.Add(-1)
	if c.streams.Add(1) > maxStreams {
		refuse(w, consentStyle, http.StatusTooManyRequests, "This page is open too many times.")
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	s := &stream{w: w, control: http.NewResponseController(w)}
	_ = c.follow(ctx, s) // the browser has gone, or the page is closed
}

// follow writes until every login has ended.
func (c *Consent) follow(ctx context.Context, s *stream) error {
	sub := c.driver.Subscribe() // before the first look, so that nothing falls between
	defer sub.Close()
	for {
		v := look(c.driver.Rows())
		if err := s.page(v); err != nil {
			return err
		}
		if v.Done {
			return s.write("event: done\ndata: {}\n\n")
		}
		wait, cancel := context.WithTimeout(ctx, c.opt.KeepAlive)
		_, _, err := sub.Next(wait)
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, context.DeadlineExceeded):
			if err := s.write(": still here\n\n"); err != nil {
				return err
			}
		case err != nil:
			return err // the driver is closed
		}
	}
}

// stream is one browser that listens.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	last    []byte
}

// page sends the page if it is another one than before.
func (s *stream) page(v view) error {
	data, err := json.Marshal(v)
	if err != nil || bytes.Equal(data, s.last) {
		return err
	}
	s.last = data
	return s.write("event: page\ndata: " + string(data) + "\n\n")
}

func (s *stream) write(text string) error {
	// Not every writer has deadlines; those of net/http do.
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}
