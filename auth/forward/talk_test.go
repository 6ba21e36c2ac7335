package forward

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/vault"
)

// world is a remote machine with one server, and the two ends of a line to it.
type world struct {
	as     *fake.AuthServer
	engine *auth.Engine
	served chan error // how the remote side ended
	toFar  *io.PipeWriter
	near   *Local
}

func newWorld(t *testing.T, as *fake.AuthServer) *world {
	t.Helper()
	_, stop, err := as.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	w := &world{as: as, engine: auth.New(vault.NewMemory(), nil), served: make(chan error, 1)}
	t.Cleanup(func() { _ = w.engine.Close() })
	p := &fake.Protected{}
	server := startServer(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		as.Protect(p, http.NotFoundHandler()).ServeHTTP(rw, r)
	}))
	p.Resource = server + "/mcp"
	far := Remote{
		Hello: Hello{Usher: "v1", Host: "devbox"},
		Begin: func(context.Context, Order) (*bulk.Driver, []bulk.Target, error) {
			target := bulk.Target{
				Account: auth.Account{Server: "notes"},
				Server:  config.Server{Name: "notes", Transport: config.TransportHTTP, URL: p.Resource}.WithDefaults(),
			}
			return bulk.New(bulk.NewEngine(w.engine, nil), nil), []bulk.Target{target}, nil
		},
	}
	in, toFar := io.Pipe()
	out, fromRemote := io.Pipe()
	w.toFar, w.near = toFar, NewLocal(out, toFar, nil)
	go func() {
		w.served <- far.Serve(t.Context(), in, fromRemote)
		_ = fromRemote.Close()
		_ = in.Close()
	}()
	return w
}

// order says hello and orders everything; answers are taken at a place of the test's.
func (w *world) order(t *testing.T) {
	t.Helper()
	if h, err := w.near.Hello("v1"); err != nil || h.Host != "devbox" {
		t.Fatalf("%+v, %v", h, err)
	}
	if err := w.near.Order(Order{Mode: bulk.ModeAll, Redirects: []string{"http://127.0.0.1:1/callback"}}); err != nil {
		t.Fatal(err)
	}
}

// answerTo consents and returns what the browser brings back.
func (w *world) answerTo(t *testing.T, page string) auth.Callback {
	t.Helper()
	back, err := w.as.Consent(t.Context(), page)
	if err != nil {
		t.Fatal(err)
	}
	cb, err := oauth.ReadCallback(back.Query())
	if err != nil {
		t.Fatal(err)
	}
	return cb
}

// What comes back is carried only if it answers a login that was shown; from the
// wrong server it changes nothing; a browser that asks twice sees the same page.
func TestAnswers(t *testing.T) {
	w := newWorld(t, fake.NewAuth(nil))
	w.order(t)
	var phases []string
	var browsers sync.WaitGroup
	err := w.near.Run(func(r bulk.Row) {
		phases = append(phases, string(r.Phase))
		if r.Phase != bulk.PhaseAwaiting {
			return
		}
		if r.Login.RedirectURI != "http://127.0.0.1:1/callback" || r.Issuer != w.as.Issuer() {
			t.Errorf("row %+v, login %+v", r, r.Login)
		}
		genuine := w.answerTo(t, r.Login.AuthorizeURL)
		browsers.Go(func() {
			stranger, wrong := genuine, genuine
			stranger.State = "of nobody"
			wrong.Iss, wrong.HasIss = "https://evil.example", true
			for name, cb := range map[string]auth.Callback{"stranger": stranger, "wrong issuer": wrong} {
				if err := w.near.Answer(t.Context(), cb); !errors.Is(err, auth.ErrUnknownState) {
					t.Errorf("%s: %v", name, err)
				}
			}
			for range 2 {
				if err := w.near.Answer(t.Context(), genuine); err != nil {
					t.Errorf("the genuine answer: %v", err)
				}
			}
		})
	}, nil)
	browsers.Wait()
	if err != nil {
		t.Fatalf("%v after %v", err, phases)
	}
	if got := strings.Join(phases, " "); !strings.HasPrefix(got, "discovering awaiting_consent exchanging") || !strings.HasSuffix(got, "connected") {
		t.Errorf("phases %s", got)
	}
	if s, err := w.engine.Status(t.Context(), auth.Account{Server: "notes"}); err != nil || s.State != auth.StateOK {
		t.Errorf("there: %+v, %v", s, err)
	}
	if err := <-w.served; err != nil {
		t.Errorf("the remote side: %v", err)
	}
	_ = w.toFar.Close()
}

// When the person says no, the browser and the row say so too.
func TestDenied(t *testing.T) {
	w := newWorld(t, fake.NewAuth(&fake.AuthOptions{Switches: []string{"deny"}}))
	w.order(t)
	said := make(chan error, 1)
	err := w.near.Run(func(r bulk.Row) {
		if r.Phase == bulk.PhaseAwaiting {
			cb := w.answerTo(t, r.Login.AuthorizeURL)
			go func() { said <- w.near.Answer(t.Context(), cb) }()
		}
	}, nil)
	rows := w.near.Rows()
	if err != nil || len(rows) != 1 || rows[0].Phase != bulk.PhaseFailed || !strings.Contains(rows[0].Detail, "access_denied") {
		t.Errorf("%+v, %v", rows, err)
	}
	if err := <-said; !errors.Is(err, auth.ErrRefused) {
		t.Errorf("the browser is told %v", err)
	}
	_ = w.toFar.Close()
}

// A near side that goes away in the middle of an answer does not cost the login, and
// one that goes away before leaves it waiting.
func TestLeaving(t *testing.T) {
	for name, answered := range map[string]bool{"after the answer": true, "before": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fake.NewAuth(nil))
			w.order(t)
			go func() {
				_ = w.near.Run(func(r bulk.Row) {
					if r.Phase == bulk.PhaseAwaiting && r.Detail == "" {
						cb := w.answerTo(t, r.Login.AuthorizeURL)
						go func() {
							if answered {
								a := &answer{State: cb.State, Code: carried{cb.Code}}
								if cb.HasIss {
									a.Iss = &cb.Iss
								}
								_ = w.near.out.send(message{Kind: kindAnswer, Answer: a})
							}
							_ = w.toFar.Close()
						}()
					}
				}, nil)
			}()
			if err := <-w.served; answered && err != nil && !errors.Is(err, ErrDisconnected) || !answered && !errors.Is(err, ErrDisconnected) {
				t.Errorf("the remote side: %v", err)
			}
			s, err := w.engine.Status(t.Context(), auth.Account{Server: "notes"})
			if err != nil || (s.State == auth.StateOK) != answered || (s.Pending != nil) == answered {
				t.Errorf("there: %+v, %v", s, err)
			}
		})
	}
}

// A far side of another time is refused by both.
func TestOtherProtocol(t *testing.T) {
	text := fromRemote + `{"kind":"hello","hello":{"protocol":2,"usher":"v9"}}` + "\n"
	if _, err := NewLocal(strings.NewReader(text), io.Discard, nil).Hello("v1"); err == nil || !strings.Contains(err.Error(), "the other machine has v9, this one has v1") {
		t.Errorf("near: %v", err)
	}
	var out strings.Builder
	far := Remote{Hello: Hello{Usher: "v1"}}
	in := strings.NewReader(fromLocal + `{"kind":"order","order":{"protocol":2,"usher":"v9"}}` + "\n")
	if err := far.Serve(t.Context(), in, &out); err == nil || !strings.Contains(out.String(), `"kind":"fault"`) {
		t.Errorf("far: %v, said %s", err, &out)
	}
}

// A browser does not wait forever for a far side that says nothing.
func TestNoVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewLocal(strings.NewReader(""), io.Discard, nil)
		if _, err := n.take(row{Event: bulk.Event{Server: "a", Phase: bulk.PhaseAwaiting}, Login: &login{State: "s"}}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := n.Answer(t.Context(), auth.Callback{State: "s", Code: vault.NewSecret("c")}); !errors.Is(err, auth.ErrUnavailable) || time.Since(began) != verdictLimit {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		n.hangUp()
		if err := n.Answer(t.Context(), auth.Callback{State: "s", Code: vault.NewSecret("c")}); !errors.Is(err, auth.ErrUnavailable) {
			t.Errorf("without a line: %v", err)
		}
	})
}

// A browser hears the verdict also when that is the last thing the remote side says.
func TestLastWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 50 {
			far, line := io.Pipe()
			n := NewLocal(strings.NewReader(""), line, nil)
			if _, err := n.take(row{Event: bulk.Event{Server: "a", Phase: bulk.PhaseAwaiting}, Login: &login{State: "s"}}); err != nil {
				t.Fatal(err)
			}
			said := make(chan error, 1)
			go func() { said <- n.Answer(t.Context(), auth.Callback{State: "s", Code: vault.NewSecret("c")}) }()
			synctest.Wait()
			n.settle(answered{State: "s", Result: resultFailed}) // before anybody waits for it
			n.hangUp()
			if _, err := far.Read(make([]byte, 4096)); err != nil {
				t.Fatal(err)
			}
			if err := <-said; !errors.Is(err, auth.ErrRefused) {
				t.Fatalf("the browser is told %v", err)
			}
		}
	})
}

// A person may paste here as well; only an address says which login it is for.
func TestPaste(t *testing.T) {
	n := NewLocal(strings.NewReader(""), io.Discard, nil)
	n.hangUp()
	for text, want := range map[string]error{
		"http://127.0.0.1:1/callback?code=abcd&state=of-nobody": auth.ErrUnknownState, "bare-code": auth.ErrBadPaste, "": auth.ErrBadPaste,
	} {
		if _, err := n.Paste(t.Context(), "", text); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
}

func startServer(t *testing.T, h http.Handler) string {
	t.Helper()
	hs := httptest.NewServer(h)
	t.Cleanup(hs.Close)
	return hs.URL
}
