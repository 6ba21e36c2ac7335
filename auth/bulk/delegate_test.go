package bulk

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
)

// login logs one target in by paste.
func (w *world) login(p *process, t Target) {
	w.t.Helper()
	o := p.Prepare(w.t.Context(), []Target{t}, ModeAll, Redirect{}, nil)[0]
	if o.Status != StatusPending {
		w.t.Fatalf("outcome %s", say(o))
	}
	page, err := w.consent(w.t.Context(), o.Login)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := p.Paste(w.t.Context(), "", page); err != nil {
		w.t.Fatal(err)
	}
}

// later does harm once the token has run out.
func later(harm func(*fake.AuthServer)) func(*fake.AuthServer) {
	return func(as *fake.AuthServer) {
		time.Sleep(2 * time.Hour)
		harm(as)
	}
}

func TestStanding(t *testing.T) {
	for name, tt := range map[string]struct {
		login bool
		harm  func(*fake.AuthServer)
		want  Standing
		err   error
		modes map[Mode]string
	}{
		"none": {modes: map[Mode]string{ModeMissing: "pending s", ModeExpired: "skipped s no stored token"}},
		"good": {
			login: true, want: Standing{Stored: true, Usable: true, Issuer: "https://as.example"},
			modes: map[Mode]string{ModeMissing: "skipped s already connected", ModeExpired: "skipped s token still valid"},
		},
		"renewed": {
			login: true, want: Standing{Stored: true, Usable: true, Issuer: "https://as.example"},
			harm:  later(func(*fake.AuthServer) {}),
			modes: map[Mode]string{ModeMissing: "skipped s already connected", ModeExpired: "skipped s token still valid"},
		},
		"revoked": {
			login: true, want: Standing{Stored: true, Issuer: "https://as.example"},
			harm:  later((*fake.AuthServer).RevokeAll),
			modes: map[Mode]string{ModeMissing: "pending s", ModeExpired: "pending s"},
		},
		// Whether the grant could be made valid is not known: that is a failure, and
		// neither "still valid" nor "no stored token".
		"server down": {
			login: true, want: Standing{Stored: true, Issuer: "https://as.example"}, err: auth.ErrUnavailable,
			harm:  later(func(as *fake.AuthServer) { as.Set("token-status=503") }),
			modes: map[Mode]string{ModeMissing: "failed s", ModeExpired: "failed s"},
		},
		"revoked, and discovery fails": {
			login: true, want: Standing{Stored: true, Issuer: "https://as.example"},
			harm:  later(func(as *fake.AuthServer) { as.RevokeAll(); as.Set("metadata-status=500") }),
			modes: map[Mode]string{ModeMissing: "failed s", ModeExpired: "failed s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				as := w.as("as.example")
				tg := w.protect("s", "as.example")
				p := w.start(nil)
				if tt.login {
					w.login(p, tg)
				}
				if tt.harm != nil {
					tt.harm(as)
				}
				got, err := NewEngine(p.e, nil).Standing(t.Context(), tg)
				if diff := cmp.Diff(tt.want, got); diff != "" || !errors.Is(err, tt.err) {
					t.Errorf("error %v, standing (-want +got):\n%s", err, diff)
				}
				for mode, want := range tt.modes {
					got := say(p.Prepare(t.Context(), w.targets, mode, Redirect{}, nil)[0])
					if got != want && (!strings.HasPrefix(want, "failed") || !strings.HasPrefix(got, want)) {
						t.Errorf("%s: %q, want %q", mode, got, want)
					}
				}
			})
		})
	}
}

// A server that wants no login is no failure.
func TestOpenServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.net.add("open.example", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/mcp" {
				http.NotFound(rw, r)
				return
			}
			_, _ = io.WriteString(rw, `{}`)
		}))
		p := w.start(nil)
		got := p.Prepare(t.Context(), targetsOf("open"), ModeMissing, Redirect{}, nil)
		if diff := cmp.Diff([]string{"skipped open the server asks for no login"}, says(got)); diff != "" {
			t.Errorf("outcome (-want +got):\n%s", diff)
		}
	})
}

// A code on another screen where there is one to be had, a page elsewhere.
func TestDeviceWhereOffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.as("as0.example")
		w.as("as1.example", "no-device")
		w.protect("a", "as0.example")
		w.protect("b", "as1.example")
		p := w.start(nil)
		got := p.Prepare(t.Context(), w.targets, ModeAll, Redirect{Device: true}, nil)
		if got[0].Login.Device == nil || got[0].Login.Device.UserCode == "" || got[1].Login.AuthorizeURL == "" {
			t.Fatalf("outcomes %+v", got)
		}
		again := p.Prepare(t.Context(), w.targets[:1], ModeAll, Redirect{Device: true}, nil)[0]
		if !again.Joined || again.Login.State != got[0].Login.State {
			t.Errorf("asked twice: %s, joined %v", say(again), again.Joined)
		}
		w.servers["as0.example"].Decide(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		if ph := phaseOf(p.Driver, "a"); ph != PhaseConnected || p.Pending() != 1 {
			t.Errorf("a is %s, %d pending", ph, p.Pending())
		}
	})
}

// A server that has a device endpoint only gets a device login, asked for or not.
func TestDeviceWhereNothingElseIsOffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		as := fake.NewAuth(&fake.AuthOptions{Name: "as.example", Clients: []fake.AuthClient{{ID: "mine"}}})
		as.Serve("https://as.example")
		w.servers["as.example"] = as
		w.net.add("as.example", as.Handler())
		target := w.protect("fly", "as.example")
		target.Server.OAuth = &config.OAuth{
			Discovery: config.Discovery{Mode: "off"}, Issuer: as.Issuer(), TokenEndpoint: as.Issuer() + "/token",
			DeviceAuthorizationEndpoint: as.Issuer() + "/device", ClientID: "mine",
		}
		p := w.start(nil)
		got := p.Prepare(t.Context(), []Target{target}, ModeAll, Redirect{}, nil)
		if len(got) != 1 || got[0].Login.Device == nil || got[0].Login.Device.UserCode == "" {
			t.Fatalf("outcomes %v", says(got))
		}
		as.Decide(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		if ph := phaseOf(p.Driver, "fly"); ph != PhaseConnected {
			t.Errorf("fly is %s", ph)
		}
	})
}

// The engine's own listener takes the answer; the driver hears of it.
func TestListener(t *testing.T) {
	w := newWorld(t)
	w.as("as.example")
	w.protect("a", "as.example")
	w.protect("b", "as.example")
	p := w.start(nil)
	sub := p.Subscribe()
	outcomes := p.Prepare(t.Context(), w.targets, ModeMissing, Redirect{Listen: true}, nil)
	if outcomes[0].Login.RedirectURI != outcomes[1].Login.RedirectURI {
		t.Error("two listeners for one process")
	}

	// A second process joins: somebody listens at that address.
	friend := w.start(nil)
	joined := friend.Prepare(t.Context(), w.targets, ModeMissing, Redirect{Listen: true}, nil)
	for i, o := range joined {
		if !o.Joined || o.Login.State != outcomes[i].Login.State {
			t.Errorf("%s was begun anew", o.Server)
		}
	}
	for _, o := range outcomes {
		page, err := w.consent(t.Context(), o.Login)
		if err != nil {
			t.Fatal(err)
		}
		get(t, page)
	}
	for _, d := range []*Driver{p.Driver, friend.Driver} {
		if err := d.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := countPhase(d, PhaseConnected); n != 2 {
			t.Errorf("%d connected: %+v", n, d.Rows())
		}
	}
	for name, got := range phases(t, sub) {
		if diff := cmp.Diff([]string{"discovering", "awaiting_consent", "exchanging", "connected"}, got); diff != "" {
			t.Errorf("events of %s (-want +got):\n%s", name, diff)
		}
	}
}

// A process that joined a login, and begins to wait when another one has finished it
// already, hears of that, whatever it read of the account a moment ago.
func TestEndedBeforeTheWait(t *testing.T) {
	w := newWorld(t)
	w.as("as.example")
	target := w.protect("a", "as.example")
	p := w.start(nil)
	login := p.Prepare(t.Context(), w.targets, ModeMissing, Redirect{}, nil)[0].Login
	friend := NewEngine(w.start(nil).e, nil)
	if s, err := friend.Standing(t.Context(), target); err != nil || s.Stored {
		t.Fatalf("before: %+v, %v", s, err)
	}
	page, err := w.consent(t.Context(), login)
	if err == nil {
		_, err = p.Paste(t.Context(), "", page)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, err := friend.Wait(t.Context(), login); err != nil || got.Account != login.Account || got.Issuer != login.Issuer {
		t.Errorf("%+v, %v", got, err)
	}
	if s, err := friend.Standing(t.Context(), target); err != nil || !s.Usable {
		t.Errorf("after: %+v, %v", s, err)
	}
}

func get(t *testing.T, address string) {
	t.Helper()
	tr := &http.Transport{DisableKeepAlives: true}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("HTTP %d", resp.StatusCode)
	}
}

// Nobody listens any more at the address of a login: it is started again, and the page
// that is still open counts too, once somebody listens there again.
func TestListenerOfADeadProcess(t *testing.T) {
	w := newWorld(t)
	w.as("as.example")
	w.protect("a", "as.example")
	before := w.start(nil)
	old := before.Prepare(t.Context(), w.targets, ModeMissing, Redirect{Listen: true}, nil)[0]
	before.end()
	p := w.start(nil)
	o := p.Prepare(t.Context(), w.targets, ModeMissing, Redirect{Listen: true}, nil)[0]
	if o.Joined || o.Login.State == old.Login.State {
		t.Fatal("joined a login that nobody listens for")
	}
	page, err := w.consent(t.Context(), old.Login)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Paste(t.Context(), "", page); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(t.Context()); err != nil || phaseOf(p.Driver, "a") != PhaseConnected {
		t.Errorf("%v, rows %+v", err, p.Rows())
	}
}

func TestJoinable(t *testing.T) {
	e := NewEngine(nil, nil)
	now := time.Now()
	live := auth.Pending{State: "s", RedirectURI: "http://127.0.0.1:1/callback", Expires: now.Add(9 * time.Minute)}
	old, device := live, live
	old.Expires = now.Add(time.Minute)
	device.Device = &auth.Device{}
	for name, tt := range map[string]struct {
		p    auth.Pending
		r    Redirect
		want bool
	}{
		"by paste":                       {live, Redirect{}, true},
		"about to run out":               {old, Redirect{}, false},
		"another way back":               {live, Redirect{URI: "https://g.example/oauth/callback"}, false},
		"the same way back":              {live, Redirect{URI: live.RedirectURI}, true},
		"nobody listens":                 {live, Redirect{Listen: true}, false},
		"a courier waits there":          {live, Redirect{Courier: []string{"http://127.0.0.1:2/callback", live.RedirectURI}}, true},
		"a courier, by another name":     {live, Redirect{Courier: []string{"http://localhost:1/callback"}}, true},
		"a courier waits elsewhere":      {live, Redirect{Courier: []string{"http://127.0.0.1:2/callback"}}, false},
		"a code, and a page is wanted":   {device, Redirect{}, false},
		"a code, and a code is wanted":   {device, Redirect{Device: true}, true},
		"listening somewhere else's job": {auth.Pending{RedirectURI: "https://g.example/cb", Expires: live.Expires}, Redirect{Listen: true}, false},
	} {
		if got := e.Joinable(context.Background(), tt.p, tt.r); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestSettings(t *testing.T) {
	for _, tt := range []struct {
		o    *Options
		want config.Bulk
	}{
		{nil, config.Bulk{Concurrency: 8, PrepareTimeout: 30 * time.Second}},
		{&Options{Bulk: config.Bulk{Concurrency: 3, PrepareTimeout: time.Second}}, config.Bulk{Concurrency: 3, PrepareTimeout: time.Second}},
	} {
		if diff := cmp.Diff(tt.want, newDriver(t, newScripted(nil), tt.o).opt.Bulk); diff != "" {
			t.Errorf("settings (-want +got):\n%s", diff)
		}
	}
}
