package fake

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"
)

// stream holds the messages that belong to one request until an HTTP response
// carries them. The work goes on whether or not anybody reads, and a client that
// lost the response may read on from where it was.
type stream struct {
	id string // first part of its event ids

	mu     sync.Mutex // guards what follows
	events []event
	ended  bool
	more   chan struct{} // closed at the next change
}

type event struct {
	frame
	final bool
}

func newStream(id string) *stream { return &stream{id: id, more: make(chan struct{})} }

func (st *stream) send(f frame, final bool) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.ended {
		return io.ErrClosedPipe
	}
	st.events = append(st.events, event{f, final})
	st.changed()
	return nil
}

func (st *stream) end() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.ended = true
	st.changed()
}

func (st *stream) changed() {
	close(st.more)
	st.more = make(chan struct{})
}

// next returns the i-th event, or io.EOF when there will be none.
func (st *stream) next(ctx context.Context, i int) (event, error) {
	for {
		st.mu.Lock()
		events, ended, more := st.events, st.ended, st.more
		st.mu.Unlock()
		if i < len(events) {
			return events[i], nil
		}
		if ended {
			return event{}, io.EOF
		}
		select {
		case <-more:
		case <-ctx.Done():
			return event{}, ctx.Err()
		}
	}
}

// messageStart is how all messages begin, and a place where white space may stand.
const messageStart = `{"jsonrpc":"2.0",`

// eventWriter writes events to an HTTP response.
type eventWriter struct {
	w     io.Writer
	flush func()
	ids   string // stream id; "" writes no event ids
	split bool   // over two data lines
}

// open writes the first, empty event of a stream that can be resumed.
func (e eventWriter) open(retry time.Duration) error {
	if e.ids == "" {
		return nil
	}
	_, err := fmt.Fprintf(e.w, "id: %s/0\nretry: %d\ndata:\n\n", e.ids, retry.Milliseconds())
	e.flush()
	return err
}

// write writes the n-th event, counted from 1.
func (e eventWriter) write(f frame, n int) error {
	if _, rest, ok := bytes.Cut(f.head, []byte(messageStart)); ok && e.split {
		f.head = append([]byte(messageStart+"\ndata: "), rest...)
	}
	f.head = append([]byte("event: message\ndata: "), f.head...)
	if e.ids != "" {
		f.head = append([]byte("id: "+e.ids+"/"+strconv.Itoa(n)+"\n"), f.head...)
	}
	f.tail = append(f.tail[:len(f.tail):len(f.tail)], "\n\n"...)
	err := f.writeTo(e.w)
	e.flush()
	return err
}
