package fake

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Entry is one line of a ledger.
type Entry struct {
	Time      time.Time         `json:"time"`
	PID       int               `json:"pid"`
	Server    string            `json:"server"`
	Session   string            `json:"session,omitempty"`
	Transport string            `json:"transport,omitempty"` // stdio, http or sse
	Event     string            `json:"event"`               // one of the Event constants, or a tool's own word
	Method    string            `json:"method,omitempty"`
	Name      string            `json:"name,omitempty"` // tool, prompt or URI
	ID        string            `json:"id,omitempty"`   // JSON text of the message's id
	Headers   map[string]string `json:"headers,omitempty"`
	Params    json.RawMessage   `json:"params,omitempty"` // of requests and notifications
	Detail    string            `json:"detail,omitempty"`
}

// Events that the server enters itself.
const (
	EventStart        = "start"        // a process or stdio connection began
	EventRequest      = "request"      // a request arrived
	EventNotification = "notification" // a notification arrived
	EventResponse     = "response"     // the client answered a question; Params is the result or error
	EventInvalid      = "invalid"      // what arrived was no message; Detail says why
	EventExecuted     = "executed"     // a side effect happened; Name is the tool, Detail what it did
	EventCancelled    = "cancelled"    // a running call was cancelled
	EventGet          = "get"          // an HTTP GET
	EventDelete       = "delete"       // an HTTP DELETE
	EventPost         = "post"         // an HTTP POST that was refused before it was read
	EventListening    = "listening"    // the client opened a way for messages that belong to no request
	EventAsked        = "asked"        // a modern call was answered with input_required; Detail is the key
	EventAnswered     = "answered"     // the client answered a question of a switch; Detail is what
	EventChild        = "child"        // a grandchild was started; Detail is its pid
	EventExit         = "exit"         // the server exits; Detail says why
	EventFault        = "fault"        // a switch fired; Name is the switch
	EventEnd          = "end"          // the client closed the connection
)

// Ledger remembers what servers were asked. It is safe for concurrent use, and
// several servers may share one.
type Ledger struct {
	mu      sync.Mutex // guards what follows
	entries []Entry
	more    chan struct{} // closed at the next entry
	file    *os.File
	discard bool // never changes
}

// NewLedger returns an empty ledger in memory.
func NewLedger() *Ledger { return &Ledger{more: make(chan struct{})} }

// DiscardLedger returns a ledger that remembers nothing, for benchmarks.
func DiscardLedger() *Ledger { return &Ledger{more: make(chan struct{}), discard: true} }

// Add enters e; its time and process id are filled in.
func (l *Ledger) Add(e Entry) {
	if l.discard {
		return
	}
	e.Time, e.PID = time.Now().UTC(), os.Getpid()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, e)
	close(l.more)
	l.more = make(chan struct{})
	if l.file != nil {
		line, err := json.Marshal(e)
		if err != nil {
			e.Params, e.Detail = nil, err.Error()
			line, _ = json.Marshal(e)
		}
		// One write per line, so that lines of several processes do not mix. A
		// ledger that cannot be written shows as missing lines in the test.
		_, _ = l.file.Write(append(line, '\n'))
	}
}

// Entries returns a copy of all entries, oldest first.
func (l *Ledger) Entries() []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries)
}

// Find returns the entries that match.
func (l *Ledger) Find(match func(Entry) bool) []Entry {
	return slices.DeleteFunc(l.Entries(), func(e Entry) bool { return !match(e) })
}

// Count returns how many requests and notifications of method arrived.
func (l *Ledger) Count(method string) int {
	return len(l.Find(func(e Entry) bool {
		return e.Method == method && (e.Event == EventRequest || e.Event == EventNotification)
	}))
}

// Calls returns the tools/call requests for tool.
func (l *Ledger) Calls(tool string) []Entry {
	return l.Find(func(e Entry) bool {
		return e.Event == EventRequest && e.Method == "tools/call" && e.Name == tool
	})
}

// Events returns the entries of one kind.
func (l *Ledger) Events(event string) []Entry {
	return l.Find(func(e Entry) bool { return e.Event == event })
}

// Executed returns how often the side effect of tool with the given detail
// happened.
func (l *Ledger) Executed(tool, detail string) int {
	return len(l.Find(func(e Entry) bool {
		return e.Event == EventExecuted && e.Name == tool && e.Detail == detail
	}))
}

// WaitFor returns the first entry that matches, past or future.
func (l *Ledger) WaitFor(ctx context.Context, match func(Entry) bool) (Entry, error) {
	for seen := 0; ; {
		l.mu.Lock()
		fresh, more := l.entries[seen:len(l.entries):len(l.entries)], l.more
		l.mu.Unlock()
		for _, e := range fresh {
			if match(e) {
				return e, nil
			}
		}
		seen += len(fresh)
		select {
		case <-more:
		case <-ctx.Done():
			return Entry{}, ctx.Err()
		}
	}
}

// OpenLedger returns a ledger that also appends each entry to a file as a line of
// JSON. Several processes may append to one file; read it with [ReadLedger].
func OpenLedger(path string) (*Ledger, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	l := NewLedger()
	l.file = f
	return l, nil
}

// Close closes the file of a ledger that has one.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	f := l.file
	l.file = nil
	return f.Close()
}

// ReadLedger reads the entries of a file as a ledger in memory. A file that does
// not exist yet is an empty ledger; a last line that is still being written is
// left out.
func ReadLedger(path string) (*Ledger, error) {
	l := NewLedger()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		var e Entry
		if !strings.HasSuffix(line, "\n") || json.Unmarshal([]byte(line), &e) != nil {
			continue
		}
		l.entries = append(l.entries, e)
	}
	return l, nil
}

// WatchLedger returns the first entry of a ledger file that matches, waiting for
// other processes to write it.
func WatchLedger(ctx context.Context, path string, match func(Entry) bool) (Entry, error) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		l, err := ReadLedger(path)
		if err != nil {
			return Entry{}, err
		}
		if found := l.Find(match); len(found) > 0 {
			return found[0], nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return Entry{}, ctx.Err()
		}
	}
}

// starts counts how often a server of that name started, in other processes too.
func (l *Ledger) starts(server string) int {
	l.mu.Lock()
	shared := l
	var path string
	if l.file != nil {
		path = l.file.Name()
	}
	l.mu.Unlock()
	if path != "" {
		if read, err := ReadLedger(path); err == nil {
			shared = read
		}
	}
	return len(shared.Find(func(e Entry) bool { return e.Event == EventStart && e.Server == server }))
}
