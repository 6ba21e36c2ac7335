package host

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/upstream"
)

// clerk is an Authorizer that does what a test says.
type clerk struct {
	refuse  func(n int) error // of the n-th refusal
	asked   atomic.Int32
	refused atomic.Int32
}

func (c *clerk) Authorize(_ context.Context, _ Key, _ *config.Server, req *http.Request) error {
	c.asked.Add(1)
	req.Header.Set("Authorization", "Bearer secret")
	return nil
}

func (c *clerk) Refused(context.Context, Key, config.Server, *upstream.UnauthorizedError) error {
	return c.refuse(int(c.refused.Add(1)))
}

func webServer(s *config.Server) {
	s.Transport, s.URL, s.Command = config.TransportHTTP, "http://127.0.0.1:1/mcp", ""
}

func TestRefusals(t *testing.T) {
	refreshed := func(int) error { return nil }
	lost := func(int) error {
		return &NeedsLoginError{Reason: "the login has ended", Command: "usher login a --account work"}
	}
	tests := []struct {
		name     string
		refuse   func(int) error // nil: no Authorizer
		dial     int             // dials that are refused first
		call     int             // calls that are refused
		requests int             // calls that reach the server
		asked    int             // of the Authorizer
		ok       bool
		text     string
	}{
		{"call, refreshed", refreshed, 0, 1, 2, 1, true, ""},
		{"call, another one that has to be refreshed", refreshed, 0, 2, 3, 2, true, ""},
		{"call, refreshed in vain", refreshed, 0, 9, 3, 2, false, "HTTP 401 to a credential that was just renewed; run: log in to a"},
		{"call, no login", lost, 0, 1, 1, 1, false, "the login has ended; run: usher login a --account work"},
		{"call, nobody to ask", nil, 0, 1, 1, 0, false, "run: log in to a"},
		{"dial, refreshed", refreshed, 1, 0, 1, 1, true, ""},
		{"dial, another one that has to be refreshed", refreshed, 2, 0, 1, 2, true, ""},
		{"dial, refreshed in vain", refreshed, 9, 0, 0, 2, false, "HTTP 401 to a credential that was just renewed; run: log in to a"},
		{"dial, no login", lost, 9, 0, 0, 1, false, "run: usher login a --account work"},
		{"dial, nobody to ask", nil, 9, 0, 0, 0, false, "HTTP 401; run: log in to a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var requests atomic.Int32
				s := &stage{next: func(_ context.Context, _ config.Server, n int) (*double, error) {
					if n <= tt.dial {
						return nil, &upstream.UnauthorizedError{Server: "a", Status: 401}
					}
					return &double{do: func(context.Context, mcp.Request) ([]byte, error) {
						if int(requests.Add(1)) <= tt.call {
							return nil, &upstream.UnauthorizedError{Server: "a", Status: 401}
						}
						return []byte(`{}`), nil
					}}, nil
				}}
				opt, c := &Options{}, &clerk{refuse: tt.refuse}
				if tt.refuse != nil {
					opt.Auth = c
				}
				h := s.open(t, opt, webServer)
				_, err := h.Do(t.Context(), keyA, callTool("pay", nil))
				if (err == nil) != tt.ok || int(requests.Load()) != tt.requests || int(c.refused.Load()) != tt.asked {
					t.Fatalf("%v, %d requests, asked %d times; want %d, %d", err, requests.Load(), c.refused.Load(), tt.requests, tt.asked)
				}
				st := stateOf(t, h, "a")
				if st.ConsecutiveFailures != 0 || st.RestartCount != 0 {
					t.Errorf("a login speaks not against the server: %+v", st)
				}
				if tt.ok {
					if st.State != Connected || st.Auth.NeedsLogin() {
						t.Errorf("%+v", st)
					}
					return
				}
				wantErr(t, err, ErrNeedsLogin)
				if st.State != NeedsAuth || !st.Auth.NeedsLogin() || !strings.Contains(said(err), tt.text) || !strings.Contains(tt.text, st.Auth.Command) {
					t.Errorf("%q, state %s, %+v; want %q", err, st.State, st.Auth, tt.text)
				}
				// After a login it works without anybody's help.
				s.next, tt.call = nil, 0
				if _, err := h.Do(t.Context(), keyA, callTool("pay", nil)); err != nil {
					t.Fatal(err)
				}
				if st := stateOf(t, h, "a"); st.State != Connected || st.Auth.NeedsLogin() {
					t.Errorf("after the login: %+v", st)
				}
			})
		})
	}
}

// A login that cannot be renewed right now is not one that a person has to make again.
func TestRefusedForNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("the authorization server is down; the login is kept")
		refuse := true
		s := &stage{next: func(context.Context, config.Server, int) (*double, error) {
			return &double{do: func(context.Context, mcp.Request) ([]byte, error) {
				if refuse {
					return nil, &upstream.UnauthorizedError{Server: "a", Status: 401}
				}
				return []byte(`{}`), nil
			}}, nil
		}}
		h := s.open(t, &Options{Auth: &clerk{refuse: func(int) error { return down }}}, webServer)
		_, err := h.Do(t.Context(), keyA, callTool("pay", nil))
		wantErr(t, err, down)
		if st := stateOf(t, h, "a"); st.State != Connected || st.Auth.NeedsLogin() || !strings.Contains(st.LastError, "the login is kept") {
			t.Errorf("%+v", st)
		}
		refuse = false
		if _, err := h.Do(t.Context(), keyA, callTool("pay", nil)); err != nil {
			t.Fatal(err)
		}
		if st := stateOf(t, h, "a"); st.LastError != "" {
			t.Errorf("%+v", st)
		}
	})
}

// Whoever has several accounts is told which one to log in.
func TestRefusedAccountIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{next: func(context.Context, config.Server, int) (*double, error) {
			return nil, &upstream.UnauthorizedError{Server: "a", Status: 401}
		}}
		h := s.open(t, &Options{Auth: &clerk{refuse: func(int) error { return nil }}}, webServer)
		_, err := h.Do(t.Context(), Key{Server: "a", Account: "work"}, callTool("pay", nil))
		wantErr(t, err, ErrNeedsLogin)
		if !strings.Contains(said(err), "log in to a@work") {
			t.Error(err)
		}
	})
}

// What a connection opens by itself asks as calls do.
func TestStreamsAskToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := &stage{}, &clerk{refuse: func(int) error { return &NeedsLoginError{} }}
		h := s.open(t, &Options{Auth: c}, webServer)
		if _, err := h.Do(t.Context(), keyA, callTool("x", nil)); err != nil {
			t.Fatal(err)
		}
		wantErr(t, s.opts[0].Refused(t.Context(), &upstream.UnauthorizedError{Status: 401}), ErrNeedsLogin)
		if c.refused.Load() != 1 {
			t.Error("nobody was asked")
		}
	})
}

func TestAuthorizeGetsEveryRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := &stage{}, &clerk{}
		h := s.open(t, &Options{Auth: c}, webServer)
		mustSpawn(t, h, lazyServer("child"))
		for _, name := range []string{"a", "child"} {
			if _, err := h.Do(t.Context(), Key{Server: name}, callTool("x", nil)); err != nil {
				t.Fatal(err)
			}
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:1/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.opts[0].Authorize(req); err != nil || req.Header.Get("Authorization") == "" {
			t.Errorf("%v, %v", err, req.Header)
		}
		if s.opts[1].Authorize != nil {
			t.Error("a child has nothing to authorize")
		}
	})
}

// What goes wrong with a credential on the way is told as it is, and is not the
// server's fault.
func TestAuthorizeFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("the keychain is locked")
		s := &stage{next: func(context.Context, config.Server, int) (*double, error) { return nil, broken }}
		h := s.open(t, nil, webServer)
		for range 10 {
			_, err := h.Do(t.Context(), keyA, callTool("x", nil))
			wantErr(t, err, broken)
		}
		if st := stateOf(t, h, "a"); st.Circuit != "closed" || st.RestartCount != 0 || st.State != Failed {
			t.Errorf("%+v", st)
		}
	})
}
