package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/mcp"
)

// allEvents reads to the end; an event that is too long shows as such a type.
func allEvents(e *Events) (out []Event, err error) {
	for {
		ev, err := e.Next()
		var long *TooLongError
		switch {
		case errors.As(err, &long):
			out = append(out, Event{Type: "too long"})
		case err != nil:
			return out, err
		default:
			if len(ev.Data) == 0 {
				ev.Data = nil
			}
			out = append(out, ev)
		}
	}
}

func message(data string) Event {
	if data == "" {
		return Event{Type: "message"}
	}
	return Event{Type: "message", Data: []byte(data)}
}

func TestEvents(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     []Event
	}{
		{"nothing", "", nil},
		{"blank lines", "\n\n\r\n\r\r", nil},
		{"one", "data: x\n\n", []Event{message("x")}},
		{"no space", "data:x\n\n", []Event{message("x")}},
		{"one space goes", "data:  x \n\n", []Event{message(" x ")}},
		{"colons stay", "data: a:b: c\n\n", []Event{message("a:b: c")}},
		{"CRLF", "data: x\r\n\r\ndata: y\r\n\r\n", []Event{message("x"), message("y")}},
		{"CR", "data: x\rdata: y\r\rdata: z\r\r", []Event{message("x\ny"), message("z")}},
		{"mixed line ends", "data: x\r\ndata: y\rdata: z\n\r\n", []Event{message("x\ny\nz")}},
		{"CRLF is one line end", "data: x\r\ndata: y\r\n\r\n", []Event{message("x\ny")}},
		{"several lines", "data: x\ndata:\ndata: y\n\n", []Event{message("x\n\ny")}},
		{"empty data", "data\n\n", []Event{message("")}},
		{"empty data with colon", "data:\n\n", []Event{message("")}},
		{"two empty lines of data", "data\ndata\n\n", []Event{message("\n")}},
		{"type", "event: ping\ndata: x\n\n", []Event{{Type: "ping", Data: []byte("x")}}},
		{"last type counts", "event: a\nevent: b\ndata: x\n\n", []Event{{Type: "b", Data: []byte("x")}}},
		{"empty type", "event: a\nevent:\ndata: x\n\n", []Event{message("x")}},
		{"a type does not outlive its event", "event: ping\n\ndata: x\n\n", []Event{message("x")}},
		{"comments", ": hi\n:\ndata: x\n: there\n\n:keep-alive\n\n", []Event{message("x")}},
		{"unknown fields", "foo: bar\ndata: x\nfoo\nDATA: y\n data: z\ndatas: q\n\n", []Event{message("x")}},
		{"a long unknown field", strings.Repeat("f", 100) + ": bar\ndata: x\n\n", []Event{message("x")}},
		{"a long comment", ":" + strings.Repeat("f", 1000) + "\ndata: x\n\n", []Event{message("x")}},
		{"id", "id: 7\ndata: x\n\ndata: y\n\n", []Event{{Type: "message", ID: "7", HasID: true, Data: []byte("x")}, {Type: "message", ID: "7", Data: []byte("y")}}},
		{"id alone", "id: 7\n\n", []Event{{Type: "message", ID: "7", HasID: true}}},
		{"empty id resets", "id: 7\n\nid\n\n", []Event{{Type: "message", ID: "7", HasID: true}, {Type: "message", HasID: true}}},
		{"id with NUL", "id: 7\x00\ndata: x\n\n", []Event{message("x")}},
		{"id that no header can carry", "id: a\x1bb\ndata: x\n\n", []Event{message("x")}},
		{"id that is not ASCII", "id: é\n\n", []Event{{Type: "message", ID: "é", HasID: true}}},
		{"retry", "retry: 1500\n\n", []Event{{Type: "message", Retry: 1500 * time.Millisecond}}},
		{"retry that is no number", "retry: 1s\n\nretry: -1\n\nretry: +1\n\nretry:\n\nretry: 1_0\n\n", nil},
		{"absurd retry", "retry: 99999999999999999999\n\nretry: 2147483648\n\n", nil},
		{"byte order mark", "\ufeffdata: x\n\n", []Event{message("x")}},
		{"byte order mark alone", "\ufeff\ndata: x\n\n", []Event{message("x")}},
		{"two byte order marks", "\ufeff\ufeffdata: x\n\ndata: y\n\n", []Event{message("y")}},
		{"late byte order mark", "data: x\n\n\ufeffdata: y\n\n", []Event{message("x")}},
		{"the end cuts an event off", "data: x\n\ndata: y\n", []Event{message("x")}},
		{"the end cuts a line off", "data: x\n\ndata: y", []Event{message("x")}},
		{"the end cuts a name off", "data: x\n\ndat", []Event{message("x")}},
		{"at the limit", "data: 12345678\n\n", []Event{message("12345678")}},
		{"at the limit in lines", "data: 123\ndata: 5678\n\n", []Event{message("123\n5678")}},
		{"above the limit", "data: 123456789\n\ndata: x\n\n", []Event{{Type: "too long"}, message("x")}},
		{"above the limit in lines", "data: 1234\ndata: 5678\ndata: more\n\ndata: x\n\n", []Event{{Type: "too long"}, message("x")}},
		{"above the limit by line breaks", strings.Repeat("data\n", 10) + "\ndata: x\n\n", []Event{{Type: "too long"}, message("x")}},
		{"far above the limit", "data: " + strings.Repeat("x", 500) + "\nevent: e\ndata: y\n\ndata: x\n\n", []Event{{Type: "too long"}, message("x")}},
		{"above the limit at the end", "data: " + strings.Repeat("x", 500), []Event{{Type: "too long"}}},
		{"an id before what is too long counts", "id: 7\ndata: 123456789\n\ndata: x\n\n", []Event{{Type: "too long"}, {Type: "message", ID: "7", Data: []byte("x")}}},
		{"huge id", "id: " + strings.Repeat("x", 10<<10) + "\ndata: a\n\ndata: x\n\n", []Event{{Type: "too long"}, message("x")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			readers := map[string]io.Reader{
				"whole": strings.NewReader(tt.in), "byte by byte": iotest.OneByteReader(strings.NewReader(tt.in)), "end with data": iotest.DataErrReader(strings.NewReader(tt.in)),
			}
			for name, r := range readers {
				got, err := allEvents(&Events{r: bufio.NewReaderSize(r, 16), max: 8})
				if diff := cmp.Diff(tt.want, got); diff != "" || !errors.Is(err, io.EOF) {
					t.Errorf("%s: %v (-want +got)\n%s", name, err, diff)
				}
			}
		})
	}
}

// TestEventsDoNotWait reads an event whose line ends are CR from a stream that then
// falls silent: the event is complete and must not wait for a possible LF.
func TestEventsDoNotWait(t *testing.T) {
	for _, in := range []string{"data: x\r\r", "data: x\n\n", "data: x\r\n\r"} {
		silent := errors.New("the reader was asked for more")
		e := NewEvents(io.MultiReader(strings.NewReader(in), iotest.ErrReader(silent)), 100)
		ev, err := e.Next()
		if err != nil || string(ev.Data) != "x" {
			t.Errorf("%q: %q, %v", in, ev.Data, err)
		}
		if _, err := e.Next(); !errors.Is(err, silent) {
			t.Errorf("%q: then %v", in, err)
		}
	}
}

func TestEventsTooLong(t *testing.T) {
	in := "data: {\"jsonrpc\":\"2.0\",\"id\":42,\ndata: \"result\":\"" + strings.Repeat("x", 100_000)
	_, err := NewEvents(strings.NewReader(in), 50_000).Next()
	var long *TooLongError
	if !errors.As(err, &long) || long.Limit != 50_000 || long.Size <= 50_000 {
		t.Fatalf("got %v", err)
	}
	if id, kind := mcp.Peek(long.Prefix); id != mcp.IntID(42) || kind != mcp.KindResponse {
		t.Errorf("the prefix says %v, %v", id, kind)
	}
}

func TestEventsOwnTheirBytes(t *testing.T) {
	e := NewEvents(strings.NewReader("data: first\n\ndata: other\n\n"), 100)
	first, _ := e.Next()
	if _, err := e.Next(); err != nil {
		t.Fatal(err)
	}
	if string(first.Data) != "first" {
		t.Errorf("the first event became %q", first.Data)
	}
}

func TestAppendEvent(t *testing.T) {
	for _, tt := range []struct{ id, message, want string }{
		{"", `{}`, "event: message\ndata: {}\n\n"},
		{"7", `{}`, "id: 7\nevent: message\ndata: {}\n\n"},
		{"7\ndata: evil", `{}`, "event: message\ndata: {}\n\n"},
		{"7\x00", `{}`, "event: message\ndata: {}\n\n"},
		{"", "{\n}", "event: message\ndata: {\ndata: }\n\n"},
		{"", "{\r}", "event: message\ndata: {\ndata: }\n\n"},
		{"", "{\r\n}", "event: message\ndata: {\ndata: }\n\n"},
		{"", "{\n\r}", "event: message\ndata: {\ndata: \ndata: }\n\n"},
		{"", "", "event: message\ndata: \n\n"},
	} {
		if got := string(AppendEvent(nil, tt.id, []byte(tt.message))); got != tt.want {
			t.Errorf("AppendEvent(%q, %q) = %q, want %q", tt.id, tt.message, got, tt.want)
		}
	}
}

// readAll is the format's own algorithm on the whole text: lines first, then fields.
func readAll(in string, limit int) (out []Event) {
	in = strings.TrimPrefix(in, "\ufeff")
	lines := strings.Split(strings.ReplaceAll(strings.ReplaceAll(in, "\r\n", "\n"), "\r", "\n"), "\n")
	var ev Event
	var data []string
	lastID, started, over := "", false, false
	for i, line := range lines {
		cut := i == len(lines)-1 // no line end
		name, value, colon := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		if over && line != "" || cut && !colon {
			continue
		}
		field := name == "event" || name == "id" || name == "retry"
		if name == "data" && len(strings.Join(append(data, value), "\n")) > limit || field && len(value) > maxField {
			out = append(out, Event{Type: "too long"})
			over = true
			continue
		}
		switch {
		case cut:
		case line == "":
			if started && !over {
				if ev.Type == "" {
					ev.Type = "message"
				}
				if text := strings.Join(data, "\n"); text != "" {
					ev.Data = []byte(text)
				}
				ev.ID = lastID
				out = append(out, ev)
			}
			ev, data, started, over = Event{}, nil, false, false
		case name == "data":
			data, started = append(data, value), true
		case name == "event":
			ev.Type = value
		case name == "id" && !strings.ContainsFunc(value, isControl):
			lastID, ev.HasID, started = value, true, true
		case name == "retry":
			if ms, err := strconv.ParseUint(value, 10, 31); err == nil {
				ev.Retry, started = time.Duration(ms)*time.Millisecond, true
			}
		}
	}
	return out
}

// FuzzEvents holds the reader, in parts of all sizes, against readAll.
func FuzzEvents(f *testing.F) {
	for _, s := range []string{
		"data: x\n\n", "\ufeffid: 1\revent: e\r\ndata: x\rdata\n\n:c\n\nretry: 5\n\n", "data: 123456789\nid: 4\n\ndata: y\n\n",
		"event: a\n\ndata:\n\n", "id: \x00\n\ndata: cut", "data\n\r\n\r", "\r\n\n\r\rdata:x\r\n\r\n", ":\n", "data:  \n\n",
	} {
		f.Add([]byte(s), uint8(8), uint8(0))
		f.Add([]byte(s), uint8(200), uint8(9))
	}
	f.Fuzz(func(t *testing.T, in []byte, limit, size uint8) {
		got, err := allEvents(&Events{r: bufio.NewReaderSize(bytes.NewReader(in), 16+int(size)), max: int64(limit)})
		if !errors.Is(err, io.EOF) {
			t.Fatalf("%q: %v", in, err)
		}
		if diff := cmp.Diff(readAll(string(in), int(limit)), got); diff != "" {
			t.Fatalf("%q, limit %d (-want +got)\n%s", in, limit, diff)
		}
	})
}

// FuzzAppendEvent checks that no message can break out of its event.
func FuzzAppendEvent(f *testing.F) {
	f.Add("1", []byte("{\n\n\"a\":1\r\r\n}"))
	f.Add("a\nb", []byte("\ndata: x\n\n"))
	f.Add("", []byte(" \rid: 7"))
	f.Fuzz(func(t *testing.T, id string, message []byte) {
		got, err := allEvents(NewEvents(bytes.NewReader(AppendEvent(nil, id, message)), 1<<20))
		want := bytes.ReplaceAll(bytes.ReplaceAll(message, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
		if len(got) != 1 || !errors.Is(err, io.EOF) || !bytes.Equal(got[0].Data, want) || got[0].Type != "message" {
			t.Fatalf("%q, %q: %+v, %v", id, message, got, err)
		}
	})
}
