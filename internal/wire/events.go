package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"
)

// Event is one server-sent event.
type Event struct {
	Type  string // "message" when the stream names none
	ID    string // last event id as of this event
	HasID bool   // this very event carried an id field
	Data  []byte
	Retry time.Duration // reconnection time announced with this event, 0 when none
}

// Events reads a stream of server-sent events with bounded size.
type Events struct {
	r      *bufio.Reader
	max    int64
	lastID string
	bom    bool
}

// NewEvents reads events whose data is at most max bytes from r.
func NewEvents(r io.Reader, max int64) *Events {
	return &Events{r: bufio.NewReaderSize(r, 16<<10), max: max}
}

// Next returns the next event. Events without data are returned too when they
// carry an id or a retry time, since both steer reconnection. An event above the
// limit yields a *TooLongError and reading may go on; every other error is final.
// An event that the end of input cuts off is dropped, as the format demands.
func (e *Events) Next() (Event, error) {
	ev := Event{Type: "message"}
	var tooLong *TooLongError
	started, dataLines := false, 0
	for {
		line, err := e.field(&tooLong)
		if err != nil {
			return Event{}, err
		}
		if len(line) == 0 {
			if tooLong != nil {
				return Event{}, tooLong
			}
			if started {
				ev.ID = e.lastID
				return ev, nil
			}
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "data":
			if int64(len(ev.Data)+len(value)) > e.max {
				tooLong = &TooLongError{Limit: e.max, Size: int64(len(ev.Data) + len(value)), Prefix: clip(ev.Data, value)}
				continue
			}
			if dataLines++; dataLines > 1 {
				ev.Data = append(ev.Data, '\n')
			}
			ev.Data = append(ev.Data, value...)
			started = true
		case "event":
			ev.Type = string(value)
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				e.lastID, ev.HasID, started = string(value), true, true
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				ev.Retry, started = time.Duration(ms)*time.Millisecond, true
			}
		}
	}
}

// field reads one line without its end. A line above the limit is thrown away and
// noted in tooLong.
func (e *Events) field(tooLong **TooLongError) ([]byte, error) {
	l := Lines{r: e.r, max: e.max + 64}
	line, err := l.line()
	if !e.bom {
		e.bom = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	var long *TooLongError
	if errors.As(err, &long) {
		long.Prefix = bytes.TrimPrefix(bytes.TrimPrefix(long.Prefix, []byte("data:")), []byte(" "))
		*tooLong = long
		return []byte(":"), nil // a comment: the event goes on
	}
	if err != nil {
		return nil, err
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

func clip(parts ...[]byte) []byte {
	var out []byte
	for _, p := range parts {
		out = append(out, p[:min(len(p), prefixLen-len(out))]...)
	}
	return out
}

// AppendEvent appends a server-sent event that carries one message. id may be "".
func AppendEvent(dst []byte, id string, message []byte) []byte {
	if id != "" {
		dst = append(append(append(dst, "id: "...), id...), '\n')
	}
	dst = append(dst, "event: message\ndata: "...)
	for {
		line, rest, more := bytes.Cut(message, []byte("\n"))
		dst = append(dst, bytes.TrimSuffix(line, []byte("\r"))...)
		if !more {
			return append(dst, "\n\n"...)
		}
		dst = append(dst, "\ndata: "...)
		message = rest
	}
}
