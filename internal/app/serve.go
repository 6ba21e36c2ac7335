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
)

// Surface is what agents see of this host. It is made when it is first asked for
// and ends with the Host.
func (h *App) Surface() *surface.Surface {
	h.surfaceOnce.Do(func() {
		s := h.Config().Usher.Gateway
		opt := &surface.Options{
			Mode: s.Surface, TokenBudget: s.TokenBudget,
			Separator: s.Separator, Profiles: profiles(h.Config()), Version: h.clientVersion, Events: h.bus, Log: h.log,
		}
		h.surface.Store(surface.New(h.gate, opt))
		states := h.bus.Subscribe(0)
		h.background.Go(func() { (&logins{h}).notice(states) })
	})
	return h.surface.Load()
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

// Gateway serves this host to agents. auth says who may come in: nil lets in
// everybody on this machine. The caller closes it.
func (h *App) Gateway(auth authn.Authenticator) *gateway.Gateway {
	return gateway.New(h.Surface(), h.gatewayOptions(auth))
}

func (h *App) gatewayOptions(auth authn.Authenticator) *gateway.Options {
	s := h.Config().Usher.Gateway
	hosts := s.AllowedHosts
	if u, err := url.Parse(s.PublicURL); err == nil && u.Host != "" {
		hosts = append(slices.Clip(hosts), u.Host)
	}
	return &gateway.Options{
		Auth: auth, Hosts: hosts, Origins: s.AllowedOrigins,
		MaxBody: s.MaxBodyBytes, MaxCalls: s.MaxConcurrentCalls, SessionIdle: s.SessionIdle, Grace: s.DrainTimeout, Log: h.log,
		Tracer: h.tracer,
	}
}

// Tokens are the tokens with which agents come in.
func (h *App) Tokens() *authn.Tokens {
	return authn.NewTokens(tokenStore{h.store, cmp.Or(h.log, slog.New(slog.DiscardHandler))})
}

// Authenticator makes what the settings say about authentication; nil means that clients
// need none. Settings of gateway.auth that cannot be used are an error: their default
// would be no authentication. The error may be a [DiscoveryError].
func (h *App) Authenticator(s config.GatewayAuth, publicURL string) (authn.Authenticator, error) {
	if err := h.Config().Usher.Mistaken("gateway.auth"); err != nil {
		return nil, fmt.Errorf("the authentication of the gateway is not known: %w", err)
	}
	switch s.Mode {
	case "", "none":
		return nil, nil
	case "token", "oidc":
		if err := h.checkDiscovery(s.Mode); err != nil {
			return nil, err
		}
	}
	switch s.Mode {
	case "token":
		return h.Tokens(), nil
	case "oidc":
		opt := authn.OIDCOptions{Issuer: s.Issuer, URL: publicURL, Scopes: s.Scopes, Client: &http.Client{Timeout: 10 * time.Second}}
		if s.Audience != "" {
			opt.Audiences = []string{s.Audience}
		}
		byJWT, err := authn.NewOIDC(opt)
		if err != nil {
			return nil, err
		}
		return authn.AnyOf{h.Tokens(), byJWT}, nil
	}
	return nil, fmt.Errorf("unknown way to authenticate %q; use none, token or oidc", s.Mode)
}

// CallbackPath is where a gateway serves the CallbackHandler.
const CallbackPath = "/oauth/callback"

// CallbackHandler takes the answers of consent pages for a hosted gateway.
func (h *App) CallbackHandler() http.Handler {
	return h.engine.CallbackHandler(func(*http.Request) string { return h.principal })
}
