package auth

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/vault"
)

// The table of RFC 9207: whether the server says that it names itself, and whether
// it does.
func TestIssuerTable(t *testing.T) {
	tests := []struct {
		name     string
		switches []string
		change   func(*Callback)
		refused  bool
	}{
		{name: "advertised, sent"},
		{name: "not advertised, not sent", switches: []string{"iss-off"}},
		{name: "not advertised, sent", switches: []string{"iss-unadvertised"}},
		{name: "advertised, absent", switches: []string{"iss-absent"}, refused: true},
		{name: "advertised, wrong", switches: []string{"iss-wrong"}, refused: true},
		{name: "not advertised, wrong", switches: []string{"iss-unadvertised", "iss-wrong"}, refused: true},
		{name: "trailing slash", change: func(c *Callback) { c.Iss += "/" }, refused: true},
		{name: "upper case", change: func(c *Callback) { c.Iss = strings.ToUpper(c.Iss) }, refused: true},
		{name: "default port", change: func(c *Callback) { c.Iss += ":443" }, refused: true},
		{name: "empty", change: func(c *Callback) { c.Iss = "" }, refused: true},
		{name: "wrong with an error", change: func(c *Callback) {
			c.Iss, c.Error, c.Words = "https://evil.example", "access_denied", "hostile words"
		}, refused: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, &fake.AuthOptions{Switches: tt.switches}, nil)
			p, err := w.e.Begin(t.Context(), w.a, w.srv, nil)
			if err != nil {
				t.Fatal(err)
			}
			good := w.answer(p)
			cb := good
			if tt.change != nil {
				tt.change(&cb)
			}
			_, err = w.e.Complete(t.Context(), cb)
			if !tt.refused {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			wantErr(t, err, ErrIssuer)
			if strings.Contains(err.Error(), "hostile") || w.tokens("") != 0 {
				t.Errorf("error %v after %d token requests", err, w.tokens(""))
			}
			if tt.change != nil { // the login is untouched: the genuine answer still works
				if _, err := w.e.Complete(t.Context(), good); err != nil {
					t.Errorf("genuine answer after a wrong one: %v", err)
				}
			}
		})
	}
}

// Two authorization servers at once; each answer is handed in with the other's name.
func TestMixUp(t *testing.T) {
	w := newWorld(t, nil, nil)
	evil := fake.NewAuth(&fake.AuthOptions{Name: "evil"})
	evil.Serve("https://evil.example")
	w.net.add("evil.example", evil.Handler())
	p, err := w.e.Begin(t.Context(), w.a, w.srv, nil)
	if err != nil {
		t.Fatal(err)
	}
	cb := w.answer(p)
	cb.Iss = evil.Issuer()
	_, err = w.e.Complete(t.Context(), cb)
	wantErr(t, err, ErrIssuer)
	if n := len(evil.Requests(fake.EventToken, "")) + w.tokens(""); n != 0 {
		t.Errorf("%d token requests", n)
	}
}

func TestReplay(t *testing.T) {
	w := newWorld(t, nil, nil)
	p, err := w.e.Begin(t.Context(), w.a, w.srv, nil)
	if err != nil {
		t.Fatal(err)
	}
	cb := w.answer(p)
	w.as.Set("token-slow=30") // all of them are in flight at once
	other := New(w.store, &Options{RoundTripper: w.net})
	defer func() { _ = other.Close() }()
	var wg sync.WaitGroup
	var mu sync.Mutex
	good := 0
	for i := range 100 {
		e := []*Engine{w.e, other}[i%2]
		wg.Go(func() {
			_, err := e.Complete(t.Context(), cb)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				good++
			case !errors.Is(err, ErrUnknownState) && !errors.Is(err, ErrBeingCompleted):
				t.Errorf("replay: %v", err)
			}
		})
	}
	wg.Wait()
	if good != 1 || w.tokens("authorization_code") != 1 {
		t.Errorf("%d logins from %d token requests", good, w.tokens("authorization_code"))
	}
	_, err = w.e.Complete(t.Context(), cb)
	wantErr(t, err, ErrUnknownState)
}

func TestCallbackTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		p, err := w.e.Begin(t.Context(), w.a, w.srv, nil)
		if err != nil {
			t.Fatal(err)
		}
		cb := w.answer(p)
		time.Sleep(pendingLife)
		_, err = w.e.Complete(t.Context(), cb)
		wantErr(t, err, ErrUnknownState, "log in again")
		if w.tokens("") != 0 {
			t.Error("a code was traded after its time")
		}
	})
}

func TestStrangeCallbacks(t *testing.T) {
	w := newWorld(t, nil, nil)
	p, err := w.e.Begin(t.Context(), w.a, w.srv, nil)
	if err != nil {
		t.Fatal(err)
	}
	good := w.answer(p)
	for name, cb := range map[string]Callback{
		"nothing":      {},
		"no state":     {Code: good.Code, Iss: good.Iss, HasIss: true},
		"wrong state":  {State: "!" + good.State[1:], Code: good.Code, Iss: good.Iss, HasIss: true},
		"state prefix": {State: good.State[:20], Code: good.Code, Iss: good.Iss, HasIss: true},
		"no code":      {State: good.State, Iss: good.Iss, HasIss: true},
		"other's no":   {State: "other", Error: "access_denied", Iss: good.Iss, HasIss: true},
	} {
		if _, err := w.e.Complete(t.Context(), cb); !errors.Is(err, ErrUnknownState) && !errors.Is(err, ErrBadPaste) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if w.tokens("") != 0 {
		t.Error("a stranger's answer was traded")
	}
	if _, err := w.e.Complete(t.Context(), good); err != nil {
		t.Errorf("the genuine answer: %v", err)
	}
}

func TestDeniedEndsTheLogin(t *testing.T) {
	w := newWorld(t, &fake.AuthOptions{Switches: []string{"deny=access_denied", "deny-words=the <b>owner</b> said\x1b[31m no"}}, nil)
	var log bytes.Buffer
	w.e.env.Log = slog.New(slog.NewTextHandler(&log, nil))
	w.a.Label = "work"
	p, err := w.e.Begin(t.Context(), w.a, w.srv, nil)
	if err != nil {
		t.Fatal(err)
	}
	cb := w.answer(p)
	_, err = w.e.Complete(t.Context(), cb)
	if line := log.String(); !strings.Contains(line, `level=WARN msg="the login was denied" server=srv account=work reason=`) || !strings.Contains(line, "access_denied") || strings.Contains(line, cb.State) {
		t.Errorf("logged: %s", line)
	}
	var d *DeniedError
	if !errors.As(err, &d) || d.Code != "access_denied" || strings.ContainsRune(d.Words, 0x1b) {
		t.Fatalf("error %#v", err)
	}
	_, err = w.e.Complete(t.Context(), cb)
	wantErr(t, err, ErrUnknownState)
	if w.tokens("") != 0 {
		t.Error("a refused login asked for tokens")
	}
}

// A network that fails gives the login back; a refusal ends it.
func TestExchangeFails(t *testing.T) {
	for name, tt := range map[string]struct {
		fault string
		is    error
		again error
	}{
		"no answer":    {"drop-before;times=1", ErrUnavailable, nil},
		"503":          {"token-status=503;times=1", ErrUnavailable, nil},
		"redirect":     {"token-redirect=https://evil.example/token;times=1", ErrUnavailable, nil},
		"lost answer":  {"drop-after-commit;times=1", ErrUnavailable, ErrRefused},
		"refused":      {"token-error=invalid_grant;times=1", ErrRefused, ErrUnknownState},
		"wrong client": {"token-error=invalid_client;times=1", ErrRefused, ErrUnknownState},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, nil)
			p, err := w.e.Begin(t.Context(), w.a, w.srv, nil)
			if err != nil {
				t.Fatal(err)
			}
			cb := w.answer(p)
			w.as.Set(tt.fault)
			_, err = w.e.Complete(t.Context(), cb)
			wantErr(t, err, tt.is)
			_, err = w.e.Complete(t.Context(), cb)
			if !errors.Is(err, tt.again) {
				t.Errorf("second try: %v, want %v", err, tt.again)
			}
			if w.net.reached("evil.example") > 0 {
				t.Error("the code went elsewhere")
			}
		})
	}
}

// Begun here, finished there: all that is needed is in the store.
func TestAnotherProcessCompletes(t *testing.T) {
	w := newWorld(t, &fake.AuthOptions{Switches: []string{"register-secret=client_secret_post"}, AuthMethods: []string{"client_secret_post"}}, nil)
	p, err := w.e.Begin(t.Context(), w.a, w.srv, nil)
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() {
		_, err := w.e.Wait(t.Context(), p.State)
		waited <- err
	}()
	other := New(w.store, &Options{RoundTripper: w.net})
	defer func() { _ = other.Close() }()
	if _, err := other.Complete(t.Context(), w.answer(p)); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err != nil {
		t.Errorf("the process that began: %v", err)
	}
	w.mustCall()
	recs, err := w.store.List(t.Context(), vault.KindPending, "")
	if err != nil || len(recs) != 0 {
		t.Errorf("%d pending logins left, %v", len(recs), err)
	}
}

func TestPendingsAndCancel(t *testing.T) {
	w := newWorld(t, nil, nil)
	p, err := w.e.Begin(t.Context(), Account{Server: "srv", Label: "work"}, w.srv, &LoginOptions{Where: "test"})
	if err != nil {
		t.Fatal(err)
	}
	all, err := w.e.Pendings(t.Context(), "")
	if err != nil || len(all) != 1 || all[0].Account.String() != "srv@work" || all[0].AuthorizeURL != p.AuthorizeURL || all[0].Where != "test" {
		t.Fatalf("pending logins %+v, %v", all, err)
	}
	if err := w.e.Cancel(t.Context(), p.State); err != nil {
		t.Fatal(err)
	}
	if _, err := w.e.Complete(t.Context(), w.answer(p)); !errors.Is(err, ErrUnknownState) {
		t.Errorf("after cancelling: %v", err)
	}
}

// Two identities at one server never mix.
func TestAccounts(t *testing.T) {
	w := newWorld(t, nil, nil)
	for _, label := range []string{"work", "home"} {
		w.a.Label = label
		w.login()
	}
	w.a.Label = ""
	if err := w.call(t.Context()); !errors.Is(err, ErrNeedsLogin) {
		t.Errorf("the default account has somebody else's login: %v", err)
	}
	all, err := w.e.Accounts(t.Context(), "")
	if err != nil || len(all) != 2 || all[0].Account.String() != "srv@home" || all[0].State != StateOK {
		t.Errorf("accounts %+v, %v", all, err)
	}
	if n := len(w.as.Requests(fake.EventRegister, "")); n != 1 {
		t.Errorf("%d registrations for one issuer", n)
	}
}
