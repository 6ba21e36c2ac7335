package auth

import (
	"testing"

	"github.com/usher-mcp/usher/auth/grants"
	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/vault"
)

// An authorization server that refuses the resource of a foreign server with
// invalid_target does not make usher ask for an unrestricted token the next time: that
// token would go to the server that was refused. Only the definition of this one
// server can leave the parameter out.
func TestInvalidTargetNeverDowngrades(t *testing.T) {
	w := newWorld(t, &fake.AuthOptions{Switches: []string{"no-resource"}}, nil)
	for range 3 {
		_, err := w.tryLogin(nil)
		wantErr(t, err, ErrDenied, "invalid_target", `"oauth": {"resource": "omit"}`, mcpURL)
	}
	if n := w.tokens(""); n != 0 {
		t.Fatalf("%d tokens were asked for without a resource", n)
	}
	for _, e := range w.as.Requests(fake.EventAuthorize, "") {
		if e.Param("resource") != mcpURL {
			t.Errorf("a login asked for resource %q", e.Param("resource"))
		}
	}
	w.srv.OAuth.Resource = oauth.ResourceOmit
	if _, err := w.tryLogin(nil); err != nil {
		t.Fatalf("with oauth.resource omit: %v", err)
	}
	w.mustCall()
}

// What older versions remembered for a whole issuer is ignored.
func TestRememberedDowngradeIsIgnored(t *testing.T) {
	w := newWorld(t, nil, nil)
	for _, name := range []string{"omit-resource https://" + asHost, "omit-resource " + grants.RecordName("https://"+asHost)} {
		_, _ = w.store.Put(t.Context(), vault.LocalKey(vault.KindStep, name), []byte("{}"), 0)
	}
	w.login()
	if got := w.as.Requests(fake.EventAuthorize, "")[0].Param("resource"); got != mcpURL {
		t.Errorf("resource %q, want %q", got, mcpURL)
	}
}

// An unrestricted token that an older version got by leaving the parameter out is not
// sent to the server either.
func TestUnrestrictedGrantIsNotUsed(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.login()
	w.edit(func(g *grants.Grant) { g.Resource = "" })
	wantErr(t, w.call(t.Context()), ErrNeedsLogin, "not restricted to this server")
	w.srv.OAuth.Resource = oauth.ResourceOmit
	w.mustCall()
}

// The same for a login without a person: the next token is restricted.
func TestUnrestrictedMachineGrantIsRenewed(t *testing.T) {
	w := newWorld(t, &fake.AuthOptions{Clients: []fake.AuthClient{{ID: "mine", Secret: "s"}}}, nil)
	w.srv.OAuth = &config.OAuth{Grant: config.GrantClientCredentials, ClientID: "mine", ClientSecret: "s"}
	if _, err := w.e.Machine(t.Context(), w.a, w.srv, nil); err != nil {
		t.Fatal(err)
	}
	w.edit(func(g *grants.Grant) { g.Resource = "" })
	w.mustCall()
	if g := w.grant(); g.Resource != mcpURL {
		t.Errorf("the grant is for %q", g.Resource)
	}
}
