package browser

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/test/oidc"
)

// TestConsent logs in to servers behind authorization servers that nobody here wrote:
// usher as a program, its page in a browser, a person who clicks.
func TestConsent(t *testing.T) {
	t.Parallel()
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	one, two := oidc.Start(t), oidc.Start(t)
	servers := map[string]any{}
	for name, p := range map[string]*oidc.Provider{"linear": one, "notion": one, "sentry": one, "tickets": two} {
		servers[name] = map[string]string{"url": serve(t, fake.New(&fake.Options{Name: name}), func(root string, next http.Handler) http.Handler { return p.Protect(root, client, next) })}
	}
	shut := fake.NewAuth(&fake.AuthOptions{Switches: []string{"register-status=403"}})
	_, stop, err := shut.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	servers["figma"] = map[string]string{"url": serve(t, fake.New(&fake.Options{Name: "figma"}), func(root string, next http.Handler) http.Handler {
		return shut.Protect(&fake.Protected{Resource: root + "/mcp"}, next)
	})}
	h := newHome(t, servers)
	cmd, said := h.usher(t.Context(), "login", "--all", "--browser"), newWords()
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, link, _ := strings.Cut(said.await(t, "one page for all of them: "), ": ")
	play(t, "consent.mjs", map[string]any{
		"link": link, "servers": []string{"linear", "notion", "sentry", "tickets"}, "refused": "figma",
		"foreign": []string{one.Issuer, two.Issuer},
	})
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("usher ended with %v, want code 1 for the server that refused", err)
	}
	said.await(t, "4 logged in, 0 skipped, 1 failed, 0 waiting")
	for _, name := range []string{"sentry", "tickets"} {
		if out, err := h.usher(t.Context(), "call", name, "add", "a=1", "b=2").CombinedOutput(); err != nil || string(out) != "3\n" {
			t.Errorf("call %s: %v\n%s", name, err, out)
		}
	}
}

// serve runs an MCP server that protect stands before, and returns its address.
func serve(t *testing.T, mcp *fake.Server, protect func(root string, next http.Handler) http.Handler) string {
	t.Helper()
	hs := httptest.NewUnstartedServer(nil)
	root := "http://" + hs.Listener.Addr().String()
	hs.Config.Handler = protect(root, mcp.Handler())
	hs.Start()
	t.Cleanup(func() {
		mcp.Close()
		hs.Close()
	})
	return root + "/mcp"
}
