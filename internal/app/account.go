package app

import (
	"fmt"
	"strings"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/policy"
)

// caller is this host's own principal, without a scope.
func (h *App) caller() policy.Caller { return policy.As(h.principal) }

// key reads "server" or "server@label".
func (h *App) key(account string) (host.Key, error) {
	server, label, labelled := strings.Cut(account, "@")
	if labelled {
		if err := config.CheckLabel(label); err != nil {
			return host.Key{}, fmt.Errorf("%s is not an account: %w", config.Visible(account), err)
		}
	}
	return host.Key{Principal: h.principal, Server: server, Account: label}, nil
}
