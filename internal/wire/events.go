package wire

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"strings"
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

	begun   bool // the place for a byte order mark is behind us
	inLine  bool // a part of the current line has not been read
	skipLF  bool // the last line ended with CR, an LF would belong to it
	tooLong bool // the current event has been reported as too long
}

// NewEvents reads events whose data is at most max bytes from r.
func NewEvents(r io.Reader, max int64) *Events {
	return &Events{r: bufio.NewReaderSize(r, 16<<10), max: max}
}

// Next returns the next event. Events without data are returned too when they
// carry an id or a retry time, since both steer reconnection. An event above the
// limit yields a *TooLongError and reading may go on; every other error is final.
// An event that the end of input cuts off is dropped, as the format demands. The
// data belongs to the caller.
func (e *Events) Next() (Event, error) {
	var ev Event
	data := frame{max: e.max}
	started, dataLines := false, 0
	for {
		name, blank, err := e.field()
		if err != nil {
			return Event{}, err
		}
		if !blank {
			took, err := e.take(&ev, name, &data, &dataLines)
			if err != nil {
				return Event{}, err
			}
			started = started || took
			continue
		}
		if started && !e.tooLong {
			ev.ID, ev.Data = e.lastID, data.take()
			if ev.Type == "" {
				ev.Type = "message"
			}
			return ev, nil
		}
		// Nothing to hand on. A type does not outlive its event.
		ev, started, e.tooLong = Event{}, false, false
	}
}

// take reads the value of a field and reports whether it makes an event.
func (e *Events) take(ev *Event, name string, data *frame, dataLines *int) (bool, error) {
	if e.tooLong {
		return false, nil
	}
	switch name {
	case "":
		return false, nil
	case "data":
		if *dataLines++; *dataLines > 1 {
			if err := e.add(data, []byte("\n")); err != nil {
				return false, err
			}
		}
		return true, e.value(data)
	}
	f := frame{max: maxField}
	if err := e.value(&f); err != nil {
		return false, err
	}
	return e.set(ev, name, string(f.take())), nil
}

// maxField bounds the values of event, id and retry.
const maxField = 8 << 10

func (e *Events) set(ev *Event, name, value string) (started bool) {
	switch name {
	case "event":
		ev.Type = value
	case "id":
		// The format refuses NUL. The other control characters could not be sent back
		// in a header.
		if strings.ContainsFunc(value, isControl) {
			return false
		}
		e.lastID, ev.HasID = value, true
		return true
	case "retry":
		ms, err := strconv.ParseUint(value, 10, 31)
		if err != nil {
			return false // the format says to ignore what is no number
		}
		ev.Retry = time.Duration(ms) * time.Millisecond
		return true
	}
	return false
}

// field goes to the next line and reads the name of its field, "" for comments and
// names that nobody knows. blank says that the line is empty, which ends an event.
func (e *Events) field() (name string, blank bool, err error) {
	if err := e.skipRest(); err != nil {
		return "", false, err
	}
	var buf [16]byte
	text := buf[:0]
	for {
		c, err := e.r.ReadByte()
		if err != nil {
			return "", false, err
		}
		if e.skipLF && c == '\n' {
			e.skipLF = false
			continue
		}
		e.skipLF = c == '\r'
		if !e.begun && string(text) == "\xef\xbb\xbf" {
			e.begun, text = true, text[:0]
		}
		if c == '\n' || c == '\r' || c == ':' {
			e.begun = true
			e.inLine = c == ':'
			return fieldName(text), len(text) == 0 && !e.inLine, nil
		}
		if text = append(text, c); len(text) == cap(text) {
			e.begun, e.inLine = true, true
			return "", false, nil
		}
	}
}

func fieldName(text []byte) string {
	switch string(text) {
	case "data":
		return "data"
	case "event":
		return "event"
	case "id":
		return "id"
	case "retry":
		return "retry"
	}
	return ""
}

// value reads the rest of the line into f, without the one space that may stand
// before it.
func (e *Events) value(f *frame) error {
	for first := true; e.inLine; {
		part, err := e.part()
		if err != nil {
			return err
		}
		if first && len(part) > 0 {
			first, part = false, bytes.TrimPrefix(part, []byte(" "))
		}
		if err := e.add(f, part); err != nil {
			return err
		}
	}
	return nil
}

func (e *Events) add(f *frame, p []byte) error {
	if err := f.add(p); err != nil {
		e.tooLong = true
		return err
	}
	return nil
}

func (e *Events) skipRest() error {
	for e.inLine {
		if _, err := e.part(); err != nil {
			return err
		}
	}
	return nil
}

// part returns what is buffered of the current line and notes whether the line ends
// with it. It never waits for the byte behind a CR: that may be long in coming, and
// the event is complete without it. The slice is good until the next read.
func (e *Events) part() ([]byte, error) {
	if _, err := e.r.Peek(1); err != nil {
		return nil, err
	}
	buf, _ := e.r.Peek(e.r.Buffered())
	end := lineEnd(buf)
	if end == len(buf) {
		_, err := e.r.Discard(end)
		return buf, err
	}
	e.inLine, e.skipLF = false, buf[end] == '\r'
	_, err := e.r.Discard(end + 1)
	return buf[:end], err
}

// AppendEvent appends a server-sent event that carries one message. id may be "";
// one with a line break or NUL is left out, since no reader would see it as it is.
func AppendEvent(dst []byte, id string, message []byte) []byte {
	if id != "" && !strings.ContainsAny(id, "\r\n\x00") {
		dst = append(append(append(dst, "id: "...), id...), '\n')
	}
	dst = append(dst, "event: message\ndata: "...)
	for {
		i := lineEnd(message)
		dst = append(dst, message[:i]...)
		if i == len(message) {
			return append(dst, "\n\n"...)
		}
		dst = append(dst, "\ndata: "...)
		if bytes.HasPrefix(message[i:], []byte("\r\n")) {
			i++
		}
		message = message[i+1:]
	}
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }
