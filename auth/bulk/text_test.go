package bulk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/config"
)

func TestNDJSON(t *testing.T) {
	p := auth.Pending{
		Account: auth.Account{Server: "linear", Label: "work"}, AuthorizeURL: "https://linear.app/authorize?a=1&b=<2>",
		State: "st", RedirectURI: "http://127.0.0.1:41517/callback", Issuer: "https://linear.app",
	}
	device := auth.Pending{State: "ds", RedirectURI: "http://127.0.0.1:1/callback", Device: &auth.Device{UserCode: "WDJB-MJHT", VerificationURI: "https://fly.io/device", Interval: 5}}
	tests := []struct {
		write func(*Encoder) error
		want  string
	}{
		{
			func(e *Encoder) error {
				return e.Outcome(Outcome{Status: StatusPending, Server: "linear@work", ServerURL: "https://mcp.linear.app/mcp", Login: p})
			},
			`{"type":"outcome","status":"pending","server":"linear@work","server_url":"https://mcp.linear.app/mcp","authorize_url":"https://linear.app/authorize?a=1&b=<2>","state":"st","redirect_uri":"http://127.0.0.1:41517/callback"}`,
		},
		{
			func(e *Encoder) error {
				return e.Outcome(Outcome{Status: StatusPending, Server: "fly", ServerURL: "https://fly.io", Login: device})
			},
			`{"type":"outcome","status":"pending","server":"fly","server_url":"https://fly.io","state":"ds","device":{"user_code":"WDJB-MJHT","verification_uri":"https://fly.io/device"}}`,
		},
		{
			func(e *Encoder) error {
				return e.Outcome(Outcome{Status: StatusSkipped, Server: "a", ServerURL: "u", Reason: ReasonConnected})
			},
			`{"type":"outcome","status":"skipped","server":"a","server_url":"u","reason":"already connected"}`,
		},
		{
			func(e *Encoder) error {
				return e.Outcome(Outcome{Status: StatusFailed, Server: "a", ServerURL: "u", Err: errors.New("x\n  access_token=abc&y")})
			},
			`{"type":"outcome","status":"failed","server":"a","server_url":"u","error":"x access_token=…&y"}`,
		},
		{
			func(e *Encoder) error { return e.Event(Event{Server: "a", ServerURL: "u", Phase: PhaseAwaiting}) },
			`{"type":"event","server":"a","server_url":"u","phase":"awaiting_consent","seconds":0}`,
		},
		{
			func(e *Encoder) error {
				return e.Event(Event{Server: "a", ServerURL: "u", Phase: PhaseFailed, Detail: "no"})
			},
			`{"type":"event","server":"a","server_url":"u","phase":"failed","detail":"no","seconds":0}`,
		},
	}
	for _, tt := range tests {
		var b bytes.Buffer
		if err := tt.write(NewEncoder(&b)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want+"\n", b.String()); diff != "" {
			t.Errorf("line (-want +got):\n%s", diff)
		}
	}
}

// whole fails when a line comes in parts.
type whole struct{ lines int }

func (w *whole) Write(p []byte) (int, error) {
	if w.lines++; !json.Valid(p) || bytes.Count(p, []byte("\n")) != 1 {
		return 0, fmt.Errorf("part of a line: %q", p)
	}
	return len(p), nil
}

func TestLinesAreWrittenWhole(t *testing.T) {
	w := &whole{}
	e := NewEncoder(w)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if err := e.Event(Event{Server: strings.Repeat("x", 5000)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if w.lines != 400 {
		t.Errorf("%d lines, want 400", w.lines)
	}
	if err := NewEncoder(failing{}).Event(Event{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a closed pipe: %v", err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"plain words stay: HTTP 403 from as.example":     "plain words stay: HTTP 403 from as.example",
		"https://x/cb?code=abc&state=def&iss=https://as": "https://x/cb?code=…&state=…&iss=https://as",
		"CODE=abc; next":                                    "CODE=…; next",
		`{"access_token": "a\"b", "scope": "x"}`:            `{"access_token": "…", "scope": "x"}`,
		`{"refresh_token":"cut off`:                         `{"refresh_token":"…"`,
		"Authorization: Bearer abcdefghijklmnop rest":       "Authorization: Bearer … rest",
		"the server offers Basic authentication":            "the server offers Basic authentication",
		"eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.sig was wrong": "… was wrong",
		"https://user:pass@host/path":                       "https://…@host/path",
		"a\x1b[31mred\x1b[0m\r\nline\u202e":                 "a [31mred [0m line",
		"state the-very-state was refused":                  "state … was refused",
	} {
		if got := redact(in, "the-very-state", "st"); got != want {
			t.Errorf("redact(%q) = %q, want %q", in, got, want)
		}
	}
	if got := redact(strings.Repeat("ä", 5000)); len([]rune(got)) != maxDetail+1 {
		t.Errorf("%d runes", len([]rune(got)))
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("trade: ", "s3cr3ts3cr3t", " failed")
	f.Add(`{"a":`, "abcdefabcdef", `"}`)
	f.Add("code=x&", "0123456789ab", "\"'<>")
	f.Add("Bearer ", "AAAAAAAAAAAAAAAA", "\n")
	f.Fuzz(func(t *testing.T, before, secret, after string) {
		if len(secret) < 12 || strings.ContainsFunc(secret, func(r rune) bool {
			return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
		}) || strings.Contains(before+after+hidden, secret) {
			return
		}
		for _, text := range []string{
			before + " access_token=" + secret + after, before + ` "client_secret":"` + secret + `"` + after,
			before + " Bearer " + secret + "0000" + after, before + secret + after,
		} {
			known := ""
			if text == before+secret+after {
				known = secret
			}
			got := redact(text, known)
			if strings.Contains(got, secret) {
				t.Errorf("%q shows the secret: %q", text, got)
			}
			if !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r\x1b") {
				t.Errorf("not fit to be shown: %q", got)
			}
		}
	})
}

func TestAddressesWithCredentialsAreNotShown(t *testing.T) {
	e := newScripted(nil)
	d := newDriver(t, e, nil)
	tg := target("a")
	tg.Server.URL = "https://me:hunter2hunter2@a.example/mcp?api_key=sk-0123456789abcdef"
	o := d.Prepare(t.Context(), []Target{tg}, ModeAll, Redirect{}, nil)[0]
	row := one(t, d)
	for _, shownURL := range []string{o.ServerURL, row.ServerURL} {
		if strings.Contains(shownURL, "hunter2") || strings.Contains(shownURL, "sk-0123") || !strings.Contains(shownURL, "a.example/mcp") {
			t.Errorf("shown as %q", shownURL)
		}
	}
	if shown(config.Server{URL: "https://a.example/mcp?x=1"}) != "https://a.example/mcp?x=1" {
		t.Error("a harmless address was changed")
	}
}

func TestByIssuer(t *testing.T) {
	type item struct{ name, issuer string }
	items := []item{{"a", "y"}, {"b", ""}, {"c", "x"}, {"d", "y"}, {"e", ""}, {"f", "x"}}
	var got []string
	for _, g := range ByIssuer(items, func(i item) string { return i.issuer }) {
		line := g.Issuer + ":"
		for _, i := range g.Items {
			line += i.name
		}
		got = append(got, line)
	}
	if diff := cmp.Diff([]string{"y:ad", "x:cf", ":be"}, got); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	if g := ByIssuer(nil, func(item) string { return "" }); g != nil {
		t.Errorf("groups of nothing: %v", g)
	}
}

func TestGroupsOfTheDriver(t *testing.T) {
	e := newScripted(map[string]script{"a": {issuer: "https://x"}, "b": {issuer: "https://y"}, "c": {issuer: "https://x"}})
	d := newDriver(t, e, nil)
	begin(t, d, "a", "b", "c")
	got := map[string]int{}
	for _, g := range d.Groups() {
		got[g.Issuer] = len(g.Items)
	}
	if diff := cmp.Diff(map[string]int{"https://x": 2, "https://y": 1}, got); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}
