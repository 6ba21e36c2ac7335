package gateway

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/gateway/authn"
)

// Whatever a browser can be made to send is turned away by its headers alone.
func TestGuard(t *testing.T) {
	g := New(emptyEndpoints{}, &Options{Hosts: []string{"usher.example.com", "only.example.com:8443"}, Origins: []string{"https://app.example.com"}})
	defer g.Close()
	h := g.Handler()
	for _, tt := range []struct {
		name   string
		host   string
		header []string
		want   int // 0: it passes the guard
	}{
		{"loopback name", "localhost:8080", nil, 0},
		{"loopback name in capitals", "LOCALHOST:8080", nil, 0},
		{"loopback name without port", "localhost", nil, 0},
		{"loopback address", "127.0.0.1:8080", nil, 0},
		{"another loopback address", "127.8.9.1:8080", nil, 0},
		{"loopback address, version 6", "[::1]:8080", nil, 0},
		{"loopback address mapped into version 6", "[::ffff:127.0.0.1]:80", nil, 0},
		{"configured name", "usher.example.com", nil, 0},
		{"configured name with any port", "usher.example.com:444", nil, 0},
		{"configured name with its port", "only.example.com:8443", nil, 0},
		{"configured name with another port", "only.example.com:8444", nil, http.StatusMisdirectedRequest},
		{"foreign name", "evil.example.com", nil, http.StatusMisdirectedRequest},
		{"foreign name with our port", "evil.example.com:8080", nil, http.StatusMisdirectedRequest},
		{"address as part of a name", "127.0.0.1.evil.example.com", nil, http.StatusMisdirectedRequest},
		{"loopback name as part of a name", "localhost.evil.example.com", nil, http.StatusMisdirectedRequest},
		{"our name as part of a name", "usher.example.com.evil.com", nil, http.StatusMisdirectedRequest},
		{"subdomain", "a.usher.example.com", nil, http.StatusMisdirectedRequest},
		{"name below localhost", "x.localhost", nil, http.StatusMisdirectedRequest},
		{"trailing dot", "localhost.", nil, http.StatusMisdirectedRequest},
		{"unspecified address", "0.0.0.0:8080", nil, http.StatusMisdirectedRequest},
		{"private address that is not ours", "192.168.7.7:8080", nil, http.StatusMisdirectedRequest},
		{"address as a number", "2130706433", nil, http.StatusMisdirectedRequest},
		{"no host", "", nil, http.StatusMisdirectedRequest},
		{"user in front", "localhost@evil.example.com", nil, http.StatusMisdirectedRequest},
		{"port that is none", "localhost:80x", nil, http.StatusMisdirectedRequest},
		{"bracket left open", "[::1", nil, http.StatusMisdirectedRequest},
		{"own page", "localhost:8080", []string{"Origin", "http://localhost:8080"}, 0},
		{"own page over TLS", "usher.example.com", []string{"Origin", "https://usher.example.com"}, 0},
		{"configured page", "localhost:8080", []string{"Origin", "https://app.example.com"}, 0},
		{"configured page of another site", "localhost:8080", []string{"Origin", "https://app.example.com", "Sec-Fetch-Site", "cross-site"}, 0},
		{"page of another port", "localhost:8080", []string{"Origin", "http://localhost:3000"}, http.StatusForbidden},
		{"page of another loopback name", "localhost:8080", []string{"Origin", "http://127.0.0.1:8080"}, http.StatusForbidden},
		{"foreign page", "localhost:8080", []string{"Origin", "https://evil.example.com"}, http.StatusForbidden},
		{"foreign page, resembling name", "127.0.0.1:8080", []string{"Origin", "http://127.0.0.1.evil.com:8080"}, http.StatusForbidden},
		{"foreign page with our name as user", "localhost:8080", []string{"Origin", "http://localhost:8080@evil.com"}, http.StatusForbidden},
		{"page without origin", "localhost:8080", []string{"Origin", "null"}, http.StatusForbidden},
		{"file", "localhost:8080", []string{"Origin", "file://localhost:8080"}, http.StatusForbidden},
		{"extension", "localhost:8080", []string{"Origin", "chrome-extension://abc"}, http.StatusForbidden},
		{"origin with a path", "localhost:8080", []string{"Origin", "http://localhost:8080/x"}, http.StatusForbidden},
		{"two origins", "localhost:8080", []string{"Origin", "http://localhost:8080", "Origin", "https://evil.example.com"}, http.StatusForbidden},
		{"other site without origin", "localhost:8080", []string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{"same site, other port", "localhost:8080", []string{"Sec-Fetch-Site", "same-site"}, http.StatusForbidden},
		{"typed into the browser", "localhost:8080", []string{"Sec-Fetch-Site", "none"}, 0},
		{"rebound name and its page", "evil.example.com:8080", []string{"Origin", "http://evil.example.com:8080"}, http.StatusMisdirectedRequest},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, path := range []string{"/mcp", "/direct/mcp", "/meta/mcp", "/servers/x/mcp", "/profiles/x/mcp", "/healthz", "/readyz", authn.MetadataPath, "/"} {
				for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodOptions} {
					r := httptest.NewRequest(method, path, unread{t})
					r.Host = tt.host
					r.Header.Set("Accept", "application/json") // no stream is opened
					for i := 0; i < len(tt.header); i += 2 {
						r.Header.Add(tt.header[i], tt.header[i+1])
					}
					w := httptest.NewRecorder()
					h.ServeHTTP(w, r)
					refused := w.Code == http.StatusForbidden || w.Code == http.StatusMisdirectedRequest
					if tt.want == 0 && refused || tt.want != 0 && w.Code != tt.want {
						t.Errorf("%s %s: %d %s", method, path, w.Code, strings.TrimSpace(w.Body.String()))
					}
					for name := range w.Header() {
						if strings.HasPrefix(name, "Access-Control-") {
							t.Errorf("%s %s: header %s", method, path, name)
						}
					}
				}
			}
		})
	}
}

// unread is a body that nobody may look at.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, errors.New("unread")
}

// A form or an image can send these without asking the server first.
func TestContentTypes(t *testing.T) {
	g := New(emptyEndpoints{}, nil)
	defer g.Close()
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "application/jsonp", "text/json"} {
		r := httptest.NewRequest(http.MethodPost, "/mcp", unread{t})
		r.Host = "localhost"
		r.Header.Set("Content-Type", kind)
		w := httptest.NewRecorder()
		g.Handler().ServeHTTP(w, r)
		if w.Code != http.StatusUnsupportedMediaType {
			t.Errorf("%q: %d", kind, w.Code)
		}
	}
}

func TestCheckListen(t *testing.T) {
	for _, tt := range []struct {
		addr       string
		open, safe bool // without and with authentication
	}{
		{"127.0.0.1:8080", true, true},
		{"localhost:0", true, true},
		{"[::1]:8080", true, true},
		{"127.0.0.2:80", true, true},
		{":8080", false, true},
		{"0.0.0.0:8080", false, true},
		{"[::]:8080", false, true},
		{"192.168.1.2:8080", false, true},
		{"usher.example.com:443", false, true},
		{"localhost.evil.com:80", false, true},
		{"unix:/run/usher.sock", true, true},
		{"unix:mcp.sock", true, true},
		{"unix:", false, false},
		{"8080", false, false},
		{"", false, false},
	} {
		for _, auth := range []bool{false, true} {
			want := tt.open
			if auth {
				want = tt.safe
			}
			if err := CheckListen(tt.addr, auth); (err == nil) != want {
				t.Errorf("CheckListen(%q, %t) = %v", tt.addr, auth, err)
			}
		}
	}
	if err := CheckListen(":80", false); !errors.Is(err, ErrOpenDoor) {
		t.Errorf("not ErrOpenDoor: %v", err)
	}
}
