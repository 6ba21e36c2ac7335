package bulk

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/internal/limit"
)

// ErrBadInput says that a line of input is none of those that [Input] reads.
var ErrBadInput = errors.New("the line cannot be read")

// Input reads the answers with which a program drives logins, one per line:
//
//	http://127.0.0.1:41517/callback?code=…&state=…    the URL the browser was redirected to
//	{"state": "…", "code": "…", "iss": "…"}           the parameters of that URL
//	{"state": "…", "error": "…", "error_description": "…"}
//	{"cancel": "linear@work"}                         an account, or the state of a login
//
// For every line that is not blank it writes one reply, as soon as the answer was
// exchanged or refused. Lines are worked on side by side, so replies may arrive in another
// order; each has the number of its line.
type Input struct {
	d   *Driver
	enc *Encoder
	// Ready, if not nil, holds back answers to logins that are not known yet until it
	// is closed: they may be about to begin.
	Ready <-chan struct{}

	mu     sync.Mutex // guards closed, and adding to work
	closed bool
	work   sync.WaitGroup
}

// NewInput returns the input of a driver whose replies go to enc.
func NewInput(d *Driver, enc *Encoder) *Input { return &Input{d: d, enc: enc} }

// Read reads lines until r ends and all of them were worked on, or until [Input.Close].
// The error is that of reading.
func (in *Input) Read(ctx context.Context, r io.Reader) error {
	jobs := make(chan numbered)
	var workers sync.WaitGroup
	for range limit.LoginInputAnswers {
		workers.Go(func() {
			for job := range jobs {
				in.take(ctx, job)
			}
		})
	}
	err := in.scan(ctx, r, jobs)
	close(jobs)
	workers.Wait()
	return err
}

// Close makes all later lines be ignored, and waits for those that are being worked on.
func (in *Input) Close() {
	in.mu.Lock()
	in.closed = true
	in.mu.Unlock()
	in.work.Wait()
}

// numbered is a line of input.
type numbered struct {
	n       int
	text    string
	tooLong bool
}

func (in *Input) scan(ctx context.Context, r io.Reader, jobs chan<- numbered) error {
	lines := bufio.NewReaderSize(r, limit.LoginInputLine)
	for n := 1; ; n++ {
		text, tooLong, err := readLine(lines)
		if text != "" || tooLong {
			select {
			case jobs <- numbered{n, text, tooLong}:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// readLine returns the next line without the blanks around it. Of one that does not fit
// into the buffer nothing is kept.
func readLine(r *bufio.Reader) (text string, tooLong bool, err error) {
	line, more, err := r.ReadLine()
	for text = string(line); more && err == nil; text = "" {
		tooLong = true
		_, more, err = r.ReadLine()
	}
	return strings.TrimSpace(text), tooLong, err
}

// take works on one line and writes its reply.
func (in *Input) take(ctx context.Context, l numbered) {
	in.mu.Lock()
	if in.closed {
		in.mu.Unlock()
		return
	}
	in.work.Add(1)
	in.mu.Unlock()
	defer in.work.Done()
	reply := Reply{Line: l.n, Status: "accepted"}
	err := fmt.Errorf("%w: it is longer than %d bytes", ErrBadInput, limit.LoginInputLine)
	var secrets []string
	if !l.tooLong {
		reply.Server, secrets, err = in.apply(ctx, l.text)
	}
	if err != nil {
		reply.Status, reply.Error = "rejected", redact(err.Error(), secrets...)
	}
	_ = in.enc.Reply(reply) // a reader that left is noticed at the end
}

// line is a line that is JSON.
type line struct {
	State  string  `json:"state"`
	Code   string  `json:"code"`
	Iss    *string `json:"iss"`
	Error  string  `json:"error"`
	Words  string  `json:"error_description"`
	Cancel string  `json:"cancel"`
}

// apply does what a line says and returns the account it was for, and what must not be
// shown of it.
func (in *Input) apply(ctx context.Context, text string) (server string, secrets []string, err error) {
	if !strings.HasPrefix(text, "{") {
		got, err := oauth.ParsePaste(text)
		if err != nil {
			return "", nil, err
		}
		secrets = []string{got.Code.Reveal(), got.State}
		login, err := in.finish(ctx, got.State, func() (*auth.Login, error) { return in.d.Paste(ctx, "", text) })
		return accountOf(login), secrets, err
	}
	var l line
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if dec.Decode(&l) != nil || dec.More() {
		return "", nil, fmt.Errorf(`%w: it is not one JSON object with the keys state, code, iss, error and error_description, or cancel`, ErrBadInput)
	}
	if l.Cancel != "" {
		server, err := in.cancel(ctx, l.Cancel)
		return server, []string{l.State, l.Code}, err
	}
	secrets = []string{l.Code, l.State}
	cb, err := l.callback()
	if err != nil {
		return "", secrets, err
	}
	login, err := in.finish(ctx, cb.State, func() (*auth.Login, error) { return in.d.Answer(ctx, cb) })
	return accountOf(login), secrets, err
}

// callback is the answer of a consent page that a line stands for.
func (l line) callback() (auth.Callback, error) {
	q := url.Values{"state": {l.State}, "code": {l.Code}, "error": {l.Error}, "error_description": {l.Words}}
	if l.Iss != nil {
		q.Set("iss", *l.Iss)
	}
	if l.State == "" || (l.Code == "") == (l.Error == "") {
		return auth.Callback{}, fmt.Errorf("%w: it must have a state, and a code or an error", ErrBadInput)
	}
	return oauth.ReadCallback(q)
}

func accountOf(l *auth.Login) string {
	if l == nil {
		return ""
	}
	return l.Account.String()
}

// finish hands an answer in once its login is known, or none will be begun any more.
func (in *Input) finish(ctx context.Context, state string, do func() (*auth.Login, error)) (*auth.Login, error) {
	if in.d.tracked(state) == nil {
		in.awaitReady(ctx)
	}
	return do()
}

func (in *Input) awaitReady(ctx context.Context) {
	if in.Ready == nil {
		return
	}
	select {
	case <-in.Ready:
	case <-ctx.Done():
	}
}

// cancel gives up the logins that wait of an account, or the one with a state.
func (in *Input) cancel(ctx context.Context, what string) (server string, err error) {
	states, server := in.d.waitingFor(what)
	if len(states) == 0 {
		in.awaitReady(ctx)
		states, server = in.d.waitingFor(what)
	}
	if len(states) == 0 {
		return "", fmt.Errorf("%w: no such login waits", auth.ErrUnknownState)
	}
	for _, state := range states {
		err = errors.Join(err, in.d.Cancel(ctx, state))
	}
	return server, err
}

// waitingFor lists the states of the logins that wait of an account, or of the one with
// this state.
func (d *Driver) waitingFor(what string) (states []string, server string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for state, f := range d.flows {
		if state == what || f.account.String() == what {
			states, server = append(states, state), f.account.String()
		}
	}
	return states, server
}
