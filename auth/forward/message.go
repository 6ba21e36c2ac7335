package forward

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/vault"
)

// Protocol is the version of the talk. It changes when an older side would
// misunderstand a newer one.
const Protocol = 1

// The marks before messages. Each side has its own, so that a terminal that echoes
// what it gets is not taken for the other side.
const (
	fromRemote = "usher-courier-far "
	fromLocal  = "usher-courier-near "
)

// ErrMalformed says that a message could not be read: the line is damaged, or something
// else writes into it.
var ErrMalformed = errors.New("a message of the callback forwarding cannot be read")

// The kinds of messages.
const (
	kindHello    = "hello"    // far: who it is and where answers should come back
	kindOrder    = "order"    // near: what to log in
	kindRow      = "row"      // far: how far one login is
	kindAnswer   = "answer"   // near: what came back from a consent page
	kindAnswered = "answered" // far: what became of it
	kindPrepared = "prepared" // far: everything has been begun that could be
	kindDone     = "done"     // far: nothing is left to wait for
	kindFault    = "fault"    // far: why it cannot go on
)

// message is any of them; Kind says which field is set.
type message struct {
	Kind     string    `json:"kind"`
	Hello    *Hello    `json:"hello,omitempty"`
	Order    *Order    `json:"order,omitempty"`
	Row      *row      `json:"row,omitempty"`
	Answer   *answer   `json:"answer,omitempty"`
	Answered *answered `json:"answered,omitempty"`
	Fault    *Fault    `json:"fault,omitempty"`
}

// Hello is what the remote side says first.
type Hello struct {
	Protocol int    `json:"protocol"`
	Usher    string `json:"usher"` // its version
	Host     string `json:"host"`  // its name for itself
	// Redirects are loopback addresses at which the local side should take answers:
	// first the one for logins that may come back to any, then those that servers
	// are configured with.
	Redirects []string `json:"redirects"`
}

// Order is what the local side wants.
type Order struct {
	Protocol int       `json:"protocol"`
	Usher    string    `json:"usher"`
	Mode     bulk.Mode `json:"mode"`
	// Accounts are those to log in; all when empty.
	Accounts []string `json:"accounts,omitempty"`
	Scopes   []string `json:"scopes,omitempty"`
	// Redirects are the addresses at which answers are taken now, first the one for
	// logins that may come back to any.
	Redirects []string `json:"redirects"`
}

// row is a [bulk.Row] as it travels.
type row struct {
	bulk.Event
	Issuer string `json:"issuer,omitempty"`
	Login  *login `json:"login,omitempty"`
}

// login is what the local side needs of a login that waits: what a browser will see.
type login struct {
	AuthorizeURL string    `json:"authorize_url,omitempty"`
	State        string    `json:"state"`
	RedirectURI  string    `json:"redirect_uri,omitempty"`
	Expires      time.Time `json:"expires"`
}

// answer is what came back from a consent page.
type answer struct {
	State string  `json:"state"`
	Code  carried `json:"code,omitzero"`
	Iss   *string `json:"iss,omitempty"` // nil when the answer named nobody
	Error string  `json:"error,omitempty"`
	Words string  `json:"error_description,omitempty"`
}

// carried is a secret that may cross the line, and still is not to be printed.
type carried struct{ vault.Secret }

// MarshalJSON writes the secret itself.
func (c carried) MarshalJSON() ([]byte, error) { return json.Marshal(c.Reveal()) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *carried) UnmarshalJSON(text []byte) error {
	var s string
	err := json.Unmarshal(text, &s)
	c.Secret = vault.NewSecret(s)
	return err
}

// answered is what became of an answer.
type answered struct {
	State  string `json:"state"`
	Result result `json:"result"`
}

// result is how the login stands after an answer.
type result string

const (
	resultDone   result = "done"
	resultStray  result = "stray"  // nobody waits for it, or it is from the wrong server
	resultFailed result = "failed" // it was refused
	resultLater  result = "later"  // it may be tried again
)

// resultOf is how the local side is told of an error of the engine.
func resultOf(err error) result {
	switch {
	case err == nil:
		return resultDone
	case errors.Is(err, auth.ErrUnknownState), errors.Is(err, auth.ErrIssuer), errors.Is(err, auth.ErrBadPaste):
		return resultStray
	case errors.Is(err, auth.ErrDenied), errors.Is(err, auth.ErrRefused):
		return resultFailed
	}
	return resultLater
}

// err is the result as an error of the engine.
func (r result) err() error {
	switch r {
	case resultDone:
		return nil
	case resultStray:
		return auth.ErrUnknownState
	case resultFailed:
		return auth.ErrRefused
	}
	return auth.ErrUnavailable
}

// Fault is why the remote side cannot go on, in its own words.
type Fault struct {
	Message string `json:"message"`
	Next    string `json:"next,omitempty"`
}

func (f *Fault) Error() string { return f.Message }

// Hint is the next step, on the remote machine.
func (f *Fault) Hint() string { return f.Next }

// writer writes messages, each by one Write. It may be used from several goroutines.
type writer struct {
	mark string
	mu   sync.Mutex // held while a message is written
	w    io.Writer
}

func (w *writer) send(m message) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err = w.w.Write(fmt.Appendf(nil, "%s%s\n", w.mark, text))
	return err
}

// reader reads the messages behind a mark.
type reader struct {
	mark  string
	noise func(line string) // hears what is no message; nil does not
	r     *bufio.Reader

	// What the other side has sent so far: it is not trusted, so all of it is limited.
	bytes    int64
	messages int
	noises   int
}

func newReader(r io.Reader, mark string, noise func(string)) *reader {
	return &reader{mark: mark, noise: noise, r: bufio.NewReaderSize(r, 64<<10)}
}

// next returns the next message, io.EOF at the end, or an [ErrMalformed].
func (r *reader) next() (message, error) {
	for {
		line, whole, err := r.line()
		if err := r.limits(); err != nil {
			return message{}, err
		}
		if before, text, ok := bytes.Cut(line, []byte(r.mark)); ok {
			r.hear(before)
			r.messages++
			var m message
			switch {
			case !whole:
				return m, fmt.Errorf("%w: it is longer than %d bytes", ErrMalformed, limit.ForwardMessageBytes)
			case json.Unmarshal(text, &m) == nil && m.complete():
				return m, nil
			case err != nil:
				return m, err // it broke off
			}
			return m, ErrMalformed
		}
		r.hear(line)
		if err != nil {
			return message{}, err
		}
	}
}

// limits returns an error once the other side has sent too much.
func (r *reader) limits() error {
	switch {
	case r.bytes > limit.ForwardBytes:
		return fmt.Errorf("%w: the other side sent more than %d bytes", ErrMalformed, limit.ForwardBytes)
	case r.messages > limit.ForwardMessages:
		return fmt.Errorf("%w: the other side sent more than %d messages", ErrMalformed, limit.ForwardMessages)
	}
	return nil
}

// line returns the next line without its end; whole is false when it was too long
// and the rest of it was skipped.
func (r *reader) line() (line []byte, whole bool, err error) {
	whole = true
	for {
		part, err := r.r.ReadSlice('\n')
		r.bytes += int64(len(part))
		if room := limit.ForwardMessageBytes - len(line); len(part) > room {
			part, whole = part[:room], false
		}
		line = append(line, part...)
		if errors.Is(err, bufio.ErrBufferFull) && r.limits() == nil {
			continue
		}
		return bytes.TrimRight(line, "\r\n"), whole, err
	}
}

// hear passes noise on, but never a message that came back as an echo: it may hold a
// code.
func (r *reader) hear(line []byte) {
	echo := bytes.Contains(line, []byte(fromLocal)) || bytes.Contains(line, []byte(fromRemote))
	if r.noise != nil && !echo && len(bytes.TrimSpace(line)) > 0 && r.noises < limit.ForwardNoise {
		r.noises++
		r.noise(string(line[:min(len(line), 1<<10)]))
	}
}

// complete reports whether the field is there that the kind promises.
func (m message) complete() bool {
	switch m.Kind {
	case kindHello:
		return m.Hello != nil
	case kindOrder:
		return m.Order != nil
	case kindRow:
		return m.Row != nil && m.Row.Server != "" && (m.Row.Login == nil || m.Row.Login.State != "")
	case kindAnswer:
		return m.Answer != nil
	case kindAnswered:
		return m.Answered != nil
	case kindFault:
		return m.Fault != nil
	}
	return true // a kind without fields, or one of a later version, which is passed over
}
