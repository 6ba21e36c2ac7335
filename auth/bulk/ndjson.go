package bulk

import (
	"bytes"
	"encoding/json"
	"io"
	"sync"

	"github.com/usher-mcp/usher/auth"
)

// Encoder writes outcomes and events as NDJSON, one line each, each by one Write, so
// that a reader sees it at once. It may be used from several goroutines.
type Encoder struct {
	mu sync.Mutex // held while a line is written
	w  io.Writer
}

// NewEncoder writes to w.
func NewEncoder(w io.Writer) *Encoder { return &Encoder{w: w} }

type outcomeLine struct {
	Type         string      `json:"type"`
	Status       Status      `json:"status"`
	Server       string      `json:"server"`
	ServerURL    string      `json:"server_url"`
	AuthorizeURL string      `json:"authorize_url,omitempty"`
	State        string      `json:"state,omitempty"`
	RedirectURI  string      `json:"redirect_uri,omitempty"`
	Device       *deviceLine `json:"device,omitempty"`
	Reason       string      `json:"reason,omitempty"`
	Error        string      `json:"error,omitempty"`
}

type deviceLine struct {
	UserCode        string `json:"user_code"`
	VerificationURI string `json:"verification_uri"`
	Complete        string `json:"verification_uri_complete,omitempty"`
}

type eventLine struct {
	Type string `json:"type"`
	Event
}

// Outcome writes {"type":"outcome","status":…}.
func (e *Encoder) Outcome(o Outcome) error {
	return e.line(outcomeLine{
		Type: "outcome", Status: o.Status, Server: o.Server, ServerURL: o.ServerURL,
		AuthorizeURL: o.Login.AuthorizeURL, State: o.Login.State, RedirectURI: redirectOf(o.Login), Device: deviceOf(o.Login.Device),
		Reason: o.Reason, Error: o.Problem(),
	})
}

// redirectOf is empty for a login with a code on another screen: nothing comes back.
func redirectOf(p auth.Pending) string {
	if p.Device != nil {
		return ""
	}
	return p.RedirectURI
}

func deviceOf(d *auth.Device) *deviceLine {
	if d == nil {
		return nil
	}
	return &deviceLine{d.UserCode, d.VerificationURI, d.Complete}
}

// Event writes {"type":"event","server":…,"phase":…}.
func (e *Encoder) Event(v Event) error { return e.line(eventLine{"event", v}) }

// Reply is what became of a line of [Input].
type Reply struct {
	// Line is its number, from 1.
	Line int `json:"line"`
	// Status is accepted or rejected. An answer that was rejected may have left its
	// login waiting: the events tell.
	Status string `json:"status"`
	Server string `json:"server,omitempty"`
	Error  string `json:"error,omitempty"`
}

type replyLine struct {
	Type string `json:"type"`
	Reply
}

// Reply writes {"type":"input","line":…,"status":…}.
func (e *Encoder) Reply(r Reply) error { return e.line(replyLine{"input", r}) }

func (e *Encoder) line(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // addresses stay readable
	if err := enc.Encode(v); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	_, err := e.w.Write(b.Bytes())
	return err
}
