package app

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/vault"
)

// DiscoveryError says that a gateway serves several principals, and that logins of
// any of them make it ask hosts for OAuth metadata which no setting limits.
type DiscoveryError struct {
	Servers []string // whose logins do
}

func (e *DiscoveryError) Error() string {
	return fmt.Sprintf("the gateway serves several principals, and logins to %s may make it ask any host for OAuth metadata: "+
		"list the hosts of the authorization servers in gateway.discoveryHosts (\"*\" allows every public host), or set oauth.discovery of each server", strings.Join(e.Servers, ", "))
}

// discoveryHosts are the hosts that logins may reach; empty: all.
func (h *App) discoveryHosts() []string { return h.Config().Usher.Gateway.DiscoveryHosts }

// checkDiscovery refuses a gateway for several principals with unlimited discovery:
// with OpenID Connect every subject is a principal, tokens name theirs.
func (h *App) checkDiscovery(mode string) error {
	if len(h.discoveryHosts()) > 0 {
		return nil
	}
	several, err := mode == "oidc", error(nil)
	if !several {
		if several, err = h.mintedForOthers(); err != nil {
			return err
		}
	}
	var names []string
	for _, srv := range h.Config().Servers {
		if !srv.Disabled && srv.Problem == nil && srv.Discovers() {
			names = append(names, srv.Name)
		}
	}
	if !several || len(names) == 0 {
		return nil
	}
	return &DiscoveryError{Servers: names}
}

// mintedForOthers reports whether there is a token of another principal than the
// host's.
func (h *App) mintedForOthers() (bool, error) {
	all, err := h.Tokens().List(h.life)
	if err != nil {
		return false, err
	}
	for _, t := range all {
		if cmp.Or(t.Principal, vault.Local) != h.principal && !t.Expired() {
			return true, nil
		}
	}
	return false, nil
}

// mayDiscover refuses a login of another principal than the host's where
// checkDiscovery would have: its token may have been minted, or the server added,
// since the gateway started.
func (h *App) mayDiscover(a auth.Account, srv config.Server) error {
	g := h.Config().Usher.Gateway
	own := cmp.Or(a.Principal, vault.Local) == h.principal
	if own || len(g.DiscoveryHosts) > 0 || !srv.Discovers() || g.Auth.Mode != "token" && g.Auth.Mode != "oidc" {
		return nil
	}
	return &DiscoveryError{Servers: []string{srv.Name}}
}
