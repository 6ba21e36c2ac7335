package gate

import (
	"strings"
	"testing"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/vault"
)

// TestLogoutLeavesNoNames: what was listed with an account is unknown at once when
// the account is gone, in the words for what never was.
func TestLogoutLeavesNoNames(t *testing.T) {
	w := newWorld(t, []caller{{name: "owner"}})
	w.warm(t)
	call := func(name string) string {
		_, reply := w.post(t, "owner", "/direct/mcp", mcp.MethodToolsCall, name, `"name":"`+name+`","arguments":{}`)
		return reply
	}
	if got := call("crm--work__read"); !strings.Contains(got, workToken) {
		t.Fatalf("the account does not answer: %s", got)
	}
	if _, err := w.host.Logins().Logout(t.Context(), auth.Account{Principal: vault.Local, Server: "crm", Label: "work"}); err != nil {
		t.Fatal(err)
	}
	if got := call("crm--work__read"); !strings.Contains(got, "unknown tool: crm--work__read") {
		t.Errorf("after the logout: %s", got)
	}
}
