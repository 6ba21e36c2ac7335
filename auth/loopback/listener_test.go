package loopback

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/usher-mcp/usher/auth/oauth"
)

// The listener passes on what a browser brings to the redirect address, and nothing else.
func TestCatcher(t *testing.T) {
	var carried atomic.Int32
	c := NewListener(func(_ context.Context, cb oauth.Callback) Outcome {
		carried.Add(1)
		switch cb.Code.Reveal() {
		case "good":
			return LoggedIn
		case "refused":
			return Failed
		case "later":
			return Retry
		}
		return Unknown
	})
	defer func() { _ = c.Close() }()
	at, err := c.Listen("")
	if err != nil {
		t.Fatal(err)
	}
	root := strings.TrimSuffix(at, Path)
	for name, tt := range map[string]struct {
		method, address string
		header          map[string]string
		status          int
		carried         bool
	}{
		"good":              {"GET", at + "?state=s&code=good", nil, 200, true},
		"refused":           {"GET", at + "?state=s&code=refused", nil, 200, true},
		"later":             {"GET", at + "?state=s&code=later", nil, 503, true},
		"unknown":           {"GET", at + "?state=x&code=y", nil, 400, true},
		"head":              {"HEAD", at + "?state=s&code=good", nil, 200, false},
		"post":              {"POST", at + "?state=s&code=good", nil, 405, false},
		"prefetch":          {"GET", at + "?state=s&code=good", map[string]string{"Sec-Purpose": "prefetch"}, 503, false},
		"two codes":         {"GET", at + "?state=s&code=good&code=bad", nil, 400, false},
		"favicon":           {"GET", root + "/favicon.ico", nil, 404, false},
		"a stranger's name": {"GET", at + "?state=s&code=good", map[string]string{"Host": "evil.example"}, 421, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := carried.Load()
			status, h, body := fetch(t, tt.method, tt.address, tt.header)
			if status != tt.status || (carried.Load() > before) != tt.carried {
				t.Errorf("HTTP %d, carried %v", status, carried.Load() > before)
			}
			checkFixedPage(t, name, h, body)
		})
	}
	// It is not an engine: a neighbour that wants the port must not rely on it.
	if _, h, _ := fetch(t, http.MethodGet, root+identityPath, nil); h.Get(identityHeader) != "" {
		t.Error("it says that it is an engine's listener")
	}
}

func TestCatcherAddresses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	c := NewListener(func(context.Context, oauth.Callback) Outcome { return LoggedIn })
	defer func() { _ = c.Close() }()
	busy := "http://" + taken.Addr().String() + Path
	if got, err := c.Listen(busy); err != nil || got == busy || !strings.HasPrefix(got, "http://127.0.0.1:") {
		t.Errorf("instead of a port that is taken: %q, %v", got, err)
	}
	if err := c.ListenOn(busy); err == nil {
		t.Error("a port that is taken was taken")
	}
	for _, bad := range []string{"https://127.0.0.1:1/callback", "http://example.com:1/callback", "http://0.0.0.0:1/", "http://127.0.0.1:1/?x=1", "::", "file:///etc"} {
		if err := c.ListenOn(bad); err == nil {
			t.Errorf("listens at %s", bad)
		}
		if _, err := c.Listen(bad); err == nil {
			t.Errorf("listens for %s", bad)
		}
	}
	free := FreePort()
	fixed := "http://localhost:" + strconv.Itoa(free) + "/cb"
	if err := c.ListenOn(fixed); err != nil {
		t.Fatal(err)
	}
	if status, _, _ := fetch(t, http.MethodGet, fixed+"?state=s&code=c", nil); status != http.StatusOK {
		t.Errorf("HTTP %d", status)
	}
}
