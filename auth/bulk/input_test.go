package bulk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/internal/limit"
)

// replies are the lines that an input wrote, by the number of the line they answer.
func replies(t *testing.T, text string) map[int]Reply {
	t.Helper()
	out := map[int]Reply{}
	for line := range strings.Lines(text) {
		var r struct {
			Type string
			Reply
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Type != "input" {
			t.Errorf("line %q: %v", line, err)
		}
		out[r.Line] = r.Reply
	}
	return out
}

// prepared begins the login of n servers and returns the address that each ends at.
func prepared(t *testing.T, w *world, n int) (*process, []string) {
	t.Helper()
	w.as("as.example")
	for i := range n {
		w.protect(fmt.Sprintf("s%d", i), "as.example")
	}
	p := w.start(nil)
	var backs []string
	for _, o := range p.Prepare(t.Context(), w.targets, ModeAll, Redirect{}, nil) {
		back, err := w.consent(t.Context(), o.Login)
		if err != nil {
			t.Fatal(err)
		}
		backs = append(backs, back)
	}
	return p, backs
}

// asJSON is an address that a login ended at, as an object.
func asJSON(t *testing.T, back string) string {
	t.Helper()
	u, err := url.Parse(back)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]string{}
	for k, v := range u.Query() {
		fields[k] = v[0]
	}
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Every kind of line does what it says, and each that is not blank has one reply.
func TestInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p, backs := prepared(t, w, 5)
		state := p.Rows()[4].Login.State
		var out bytes.Buffer
		text := strings.Join([]string{
			backs[0], "", asJSON(t, backs[1]), `{"cancel":"s2"}`, `{"cancel":"nobody"}`, `{"state":"x","code":"secret-code"}`,
			`{"state":"x","kode":"y"}`, `{"state":"x"}`, "nonsense?", `{"state":"` + p.Rows()[3].Login.State + `","error":"access_denied","iss":"https://as.example"}`, `{"cancel":"` + state + `"}`,
		}, "\n")
		if err := NewInput(p.Driver, NewEncoder(&out)).Read(t.Context(), strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		got := replies(t, out.String())
		for n, want := range map[int]string{1: "accepted s0", 3: "accepted s1", 4: "accepted s2", 5: "rejected ", 6: "rejected ", 7: "rejected ", 8: "rejected ", 9: "rejected ", 10: "rejected ", 11: "accepted s4"} {
			if is := got[n].Status + " " + got[n].Server; is != want {
				t.Errorf("line %d: %q (%s), want %q", n, is, got[n].Error, want)
			}
		}
		if len(got) != 10 {
			t.Errorf("%d replies: %s", len(got), &out)
		}
		if strings.Contains(out.String(), "secret-code") || strings.Contains(out.String(), state) {
			t.Errorf("a secret is shown: %s", &out)
		}
		want := []Phase{PhaseConnected, PhaseConnected, PhaseFailed, PhaseFailed, PhaseFailed}
		for i, r := range p.Rows() {
			if r.Phase != want[i] {
				t.Errorf("%s is %s (%s), want %s", r.Server, r.Phase, r.Detail, want[i])
			}
		}
	})
}

// A line that is too long is rejected and nothing of it is kept; the next one counts.
func TestInputLineTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p, backs := prepared(t, w, 1)
		var out bytes.Buffer
		text := strings.Repeat("x", 3*limit.LoginInputLine) + "\n" + backs[0]
		if err := NewInput(p.Driver, NewEncoder(&out)).Read(t.Context(), strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		if got := replies(t, out.String()); got[1].Status != "rejected" || got[2].Status != "accepted" || len(got) != 2 {
			t.Errorf("replies %+v", got)
		}
	})
}

// However many lines there are, only so many answers are exchanged at once.
func TestInputIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p, backs := prepared(t, w, limit.LoginInputAnswers+9)
		var now, most atomic.Int32
		w.servers["as.example"].Intercept("token", countingAtOnce(&now, &most))
		var out bytes.Buffer
		if err := NewInput(p.Driver, NewEncoder(&out)).Read(t.Context(), strings.NewReader(strings.Join(backs, "\n"))); err != nil {
			t.Fatal(err)
		}
		if got := replies(t, out.String()); len(got) != len(backs) || countPhase(p.Driver, PhaseConnected) != len(backs) {
			t.Errorf("%d replies, %d connected; want %d", len(got), countPhase(p.Driver, PhaseConnected), len(backs))
		}
		if n := most.Load(); n > limit.LoginInputAnswers || n < 2 {
			t.Errorf("%d at once, want at most %d and more than one", n, limit.LoginInputAnswers)
		}
	})
}

// Over HTTP the same lines get the same replies, and a request has a largest size.
func TestInputOverHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p, backs := prepared(t, w, 2)
		rec := httptest.NewRecorder()
		p.ServeInput(rec, httptest.NewRequest("POST", "/", strings.NewReader(backs[0]+"\n{\"cancel\":\"s1\"}\n")))
		if got := replies(t, rec.Body.String()); got[1].Server != "s0" || got[2].Server != "s1" {
			t.Errorf("replies %+v", got)
		}
		rec = httptest.NewRecorder()
		p.ServeEvents(rec, httptest.NewRequest("GET", "/", nil))
		for _, want := range []string{`"server":"s0"`, `"phase":"connected"`, `"detail":"cancelled"`, `"seconds":`, `"server_url":`} {
			if !strings.Contains(rec.Body.String(), want) {
				t.Errorf("events %s\nwithout %s", rec.Body, want)
			}
		}
		rec = httptest.NewRecorder()
		p.ServeInput(rec, httptest.NewRequest("POST", "/", io.LimitReader(zeros{}, limit.LoginInputBytes+1)))
		if rec.Code != 413 {
			t.Errorf("a request that is too large: HTTP %d", rec.Code)
		}
	})
}

// timed notes the deadlines for reading that a handler sets.
type timed struct {
	*httptest.ResponseRecorder
	deadlines []time.Time
}

func (w *timed) SetReadDeadline(at time.Time) error {
	w.deadlines = append(w.deadlines, at)
	return nil
}

// A body that is sent slowly does not hold the request for longer than bodyTimeout.
func TestInputHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := prepared(t, newWorld(t), 1)
		w := &timed{ResponseRecorder: httptest.NewRecorder()}
		p.ServeInput(w, httptest.NewRequest("POST", "/", strings.NewReader("{\"cancel\":\"s0\"}\n")))
		if len(w.deadlines) != 2 || !w.deadlines[0].Equal(time.Now().Add(bodyTimeout)) || !w.deadlines[1].IsZero() {
			t.Errorf("deadlines %v, want one in %s and then none", w.deadlines, bodyTimeout)
		}
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return copy(p, slices.Repeat([]byte("\n"), len(p))), nil }

// An answer to a login that is not known yet waits until all have begun.
func TestInputWaitsUntilReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p, backs := prepared(t, w, 1)
		next := w.start(nil) // the next process, which has begun nothing yet
		in := NewInput(next.Driver, NewEncoder(io.Discard))
		ready, done := make(chan struct{}), make(chan error, 1)
		in.Ready = ready
		go func() { done <- in.Read(t.Context(), strings.NewReader(backs[0])) }()
		synctest.Wait()
		if n := len(w.servers["as.example"].Requests(fake.EventToken, "")); n != 0 {
			t.Errorf("%d codes were exchanged before", n)
		}
		close(ready)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if err := p.Wait(t.Context()); err != nil || countPhase(next.Driver, PhaseConnected) != 1 {
			t.Errorf("not connected: %v", err)
		}
	})
}

// countingAtOnce has every request take a second, and counts how many are served at once.
func countingAtOnce(now, most *atomic.Int32) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		n := now.Add(1)
		defer now.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		time.Sleep(time.Second)
		next.ServeHTTP(rw, r)
	}
}
