package app

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/gateway"
	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/surface"
	"github.com/usher-mcp/usher/vault"
)

// Frontend is what agents and people connect to: the surface, the gateway in front of
// it, the console and the control socket.
type Frontend struct{ h *App }

// Frontend is what agents and people connect to.
func (h *App) Frontend() Frontend { return Frontend{h} }

// Surface is what agents see of this host. It is made when it is first asked for
// and ends with the Host.
func (f Frontend) Surface() *surface.Surface {
	f.h.surfaceOnce.Do(func() {
		s := f.h.Config().Usher.Gateway
		opt := &surface.Options{
			Mode: s.Surface, TokenBudget: s.TokenBudget,
			Separator: s.Separator, Profiles: profiles(f.h.Config()), Version: f.h.clientVersion, Events: f.h.bus, Log: f.h.log,
		}
		f.h.surface.Store(surface.New(f.h.gate, opt))
		f.h.logins.WatchStore()
	})
	return f.h.surface.Load()
}

func profiles(cfg *config.Config) map[string]surface.Profile {
	all := cfg.Usher.Gateway.Profiles
	out := make(map[string]surface.Profile, len(all))
	for name, p := range all {
		p = cfg.Profile(p)
		out[name] = surface.Profile{Servers: p.Servers, Tools: p.Tools}
	}
	return out
}

// Gateway serves this process to agents. auth authenticates clients; nil accepts every
// client on this machine. The caller closes it.
func (f Frontend) Gateway(auth authn.Authenticator) *gateway.Gateway {
	return gateway.New(f.Surface(), f.gatewayOptions(auth))
}

func (f Frontend) gatewayOptions(auth authn.Authenticator) *gateway.Options {
	s := f.h.Config().Usher.Gateway
	hosts := s.AllowedHosts
	if u, err := url.Parse(s.PublicURL); err == nil && u.Host != "" {
		hosts = append(slices.Clip(hosts), u.Host)
	}
	return &gateway.Options{
		Auth: auth, Hosts: hosts, Origins: s.AllowedOrigins,
		MaxBody: s.MaxBodyBytes, MaxCalls: s.MaxConcurrentCalls, SessionIdle: s.SessionIdle, Grace: s.DrainTimeout, Log: f.h.log,
		Tracer: f.h.tracer,
	}
}

// Tokens are the tokens with which agents authenticate.
func (f Frontend) Tokens() *authn.Tokens {
	return authn.NewTokens(tokenStore{f.h.store, cmp.Or(f.h.log, slog.New(slog.DiscardHandler))})
}

// Authenticator makes what the settings say about authentication; nil means that clients
// need none. Settings of gateway.auth that cannot be used are an error: their default
// would be no authentication. The error may be a [logins.DiscoveryError].
func (f Frontend) Authenticator(s config.GatewayAuth, publicURL string) (authn.Authenticator, error) {
	if err := f.h.Config().Usher.Mistaken("gateway.auth"); err != nil {
		return nil, fmt.Errorf("the authentication of the gateway is not known: %w", err)
	}
	switch s.Mode {
	case "", "none":
		return nil, nil
	case "token", "oidc":
		if err := f.h.logins.CheckDiscovery(s.Mode, f.mintedForOthers); err != nil {
			return nil, err
		}
	}
	switch s.Mode {
	case "token":
		return f.Tokens(), nil
	case "oidc":
		opt := authn.OIDCOptions{Issuer: s.Issuer, URL: publicURL, Scopes: s.Scopes, Client: &http.Client{Timeout: 10 * time.Second}}
		if s.Audience != "" {
			opt.Audiences = []string{s.Audience}
		}
		byJWT, err := authn.NewOIDC(opt)
		if err != nil {
			return nil, err
		}
		return authn.AnyOf{f.Tokens(), byJWT}, nil
	}
	return nil, fmt.Errorf("unknown way to authenticate %q; use none, token or oidc", s.Mode)
}

// CallbackHandler takes the answers of consent pages for a hosted gateway.
func (f Frontend) CallbackHandler() http.Handler {
	return f.h.engine.CallbackHandler(func(*http.Request) string { return f.h.principal })
}

// mintedForOthers reports whether there is a token of another principal than this
// process's.
func (f Frontend) mintedForOthers() (bool, error) {
	all, err := f.Tokens().List(f.h.life)
	if err != nil {
		return false, err
	}
	for _, t := range all {
		if cmp.Or(t.Principal, vault.Local) != f.h.principal && !t.Expired() {
			return true, nil
		}
	}
	return false, nil
}
