package logins

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

// CheckDiscovery refuses a gateway for several principals with unlimited discovery:
// with OpenID Connect every subject is a principal; tokens name theirs, and others
// reports whether one names another principal than the manager's.
func (m *Manager) CheckDiscovery(mode string, others func() (bool, error)) error {
	cfg := m.config()
	if len(cfg.Usher.Gateway.DiscoveryHosts) > 0 {
		return nil
	}
	several, err := mode == "oidc", error(nil)
	if !several {
		if several, err = others(); err != nil {
			return err
		}
	}
	var names []string
	for _, srv := range cfg.Servers {
		if !srv.Disabled && srv.Problem == nil && srv.Discovers() {
			names = append(names, srv.Name)
		}
	}
	if !several || len(names) == 0 {
		return nil
	}
	return &DiscoveryError{Servers: names}
}

// mayDiscover refuses a login of another principal than the manager's where
// CheckDiscovery would have: its token may have been minted, or the server added,
// since the gateway started.
func (m *Manager) mayDiscover(a auth.Account, srv config.Server) error {
	g := m.config().Usher.Gateway
	own := cmp.Or(a.Principal, vault.Local) == m.principal
	if own || len(g.DiscoveryHosts) > 0 || !srv.Discovers() || g.Auth.Mode != "token" && g.Auth.Mode != "oidc" {
		return nil
	}
	return &DiscoveryError{Servers: []string{srv.Name}}
}
