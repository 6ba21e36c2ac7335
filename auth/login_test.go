package auth

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/internal/fake"
)

func TestLoginAndCall(t *testing.T) {
	w := newWorld(t, nil, &fake.Protected{Challenge: "read write"})
	if err := w.call(t.Context()); !NeedsPerson(err) || !strings.Contains(err.Error(), "srv: login required") {
		t.Fatalf("call without login: %v", err)
	}
	l := w.login()
	if diff := cmp.Diff([]string{"read", "write"}, l.Scopes); diff != "" || !l.CanRefresh || l.Issuer != w.as.Issuer() {
		t.Errorf("login %+v (-want +got):\n%s", l, diff)
	}
	w.mustCall()
	authorize, token := w.as.Requests(fake.EventAuthorize, "")[0], w.as.Requests(fake.EventToken, "")[0]
	for name, e := range map[string]fake.Entry{"authorize": authorize, "token": token} {
		if e.Param("resource") != mcpURL {
			t.Errorf("%s request has resource %q", name, e.Param("resource"))
		}
	}
	if authorize.Param("code_challenge_method") != "S256" || len(authorize.Param("state")) < 43 {
		t.Errorf("authorize request %s", authorize.Params)
	}
	reg := w.as.Requests(fake.EventRegister, "")
	if len(reg) != 1 || reg[0].Param("application_type") != "native" || !strings.Contains(reg[0].Param("grant_types"), "refresh_token") {
		t.Errorf("registrations %v", reg)
	}
	if slices.Contains(w.net.seen, "evil.example/") {
		t.Error("a stranger was asked")
	}
}
