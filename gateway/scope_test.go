package gateway

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/gateway/authn/authntest"
	"github.com/usher-mcp/usher/surface"
)

// named has some servers and profiles, and suggests names for others.
type named struct{ *script }

func (n named) Server(_ context.Context, _ surface.Agent, name string) (surface.View, error) {
	server, _, _ := strings.Cut(name, "@")
	return n.find(server, "crm", "wiki")
}

func (n named) Profile(name string) (surface.View, error) { return n.find(name, "small", "large") }
func (n named) Direct() surface.View                      { return n.script }
func (n named) Meta() surface.View                        { return n.script }

func (n named) find(name string, known ...string) (surface.View, error) {
	if slices.Contains(known, name) {
		return n.script, nil
	}
	return nil, fmt.Errorf("%w: did you mean %s", surface.ErrUnknownView, strings.Join(known, " or "))
}

// An endpoint outside the profiles of a token looks like one that is not there: same
// status, same text, and no suggestion of a name. Servers are for the gate to decide.
func TestEndpointsOutsideTheScopeAreNotThere(t *testing.T) {
	everything := []string{"/mcp", "/direct/mcp", "/meta/mcp", "/servers/crm/mcp", "/servers/crm@work/mcp", "/servers/wiki/mcp", "/profiles/small/mcp", "/profiles/large/mcp"}
	for name, tt := range map[string]struct {
		mint authn.Mint
		see  []string
	}{
		"no scope":       {authn.Mint{}, everything},
		"tools anywhere": {authn.Mint{Tools: []string{"read_*"}}, everything},
		"a profile":      {authn.Mint{Profiles: []string{"small"}}, []string{"/profiles/small/mcp"}},
		"a profile and another server": {
			authn.Mint{Profiles: []string{"small"}, Servers: []string{"crm"}}, []string{"/profiles/small/mcp"},
		},
		"a profile that is not there": {authn.Mint{Profiles: []string{"*"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tokens := authn.NewTokens(authntest.NewStore())
			g := New(named{&script{}}, &Options{Auth: tokens})
			defer g.Close()
			text, token, err := tokens.Mint(t.Context(), tt.mint)
			if err != nil || !slices.Equal(token.Profiles, tt.mint.Profiles) {
				t.Fatal(err, token)
			}
			for _, path := range append(slices.Clone(everything), "/servers/nothing/mcp", "/profiles/nothing/mcp") {
				want := http.StatusNotFound
				if slices.Contains(tt.see, path) {
					want = http.StatusOK
				}
				w := asWith(t, g.Handler(), text, "POST", path, initializeV25)
				if w.Code != want {
					t.Errorf("%s: %d, want %d", path, w.Code, want)
				}
				if body := w.Body.String(); want == http.StatusNotFound && name != "no scope" && body != "no such endpoint\n" {
					t.Errorf("%s says %q", path, body)
				}
			}
		})
	}
}

// What tells about all servers is for the operator: not for a token with a scope, and
// not for other principals.
func TestOperatorsOnly(t *testing.T) {
	secret := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("crm")) })
	tokens := authn.NewTokens(authntest.NewStore())
	g := New(&script{}, &Options{Auth: tokens})
	defer g.Close()
	for name, tt := range map[string]struct {
		mint authn.Mint
		want int
	}{
		"no scope":          {authn.Mint{}, http.StatusOK},
		"servers":           {authn.Mint{Servers: []string{"*"}}, http.StatusForbidden},
		"tools":             {authn.Mint{Tools: []string{"wiki/*"}}, http.StatusForbidden},
		"profiles":          {authn.Mint{Profiles: []string{"small"}}, http.StatusForbidden},
		"another principal": {authn.Mint{Principal: "ada"}, http.StatusForbidden},
	} {
		text, _, err := tokens.Mint(t.Context(), tt.mint)
		if err != nil {
			t.Fatal(err)
		}
		w := asWith(t, g.Operators(secret), text, "GET", "/metrics", "")
		if w.Code != tt.want || w.Code != http.StatusOK && strings.Contains(w.Body.String(), "crm") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	if w := send(t, g.Operators(secret), "GET", "/metrics", ""); w.Code != http.StatusUnauthorized {
		t.Errorf("without a token: %d", w.Code)
	}
	open := New(&script{}, nil)
	defer open.Close()
	if w := send(t, open.Operators(secret), "GET", "/metrics", ""); w.Code != http.StatusOK {
		t.Errorf("without authentication: %d", w.Code)
	}
}
