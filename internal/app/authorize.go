package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/upstream"
)

// authorizer lets the host use the OAuth engine without knowing it.
type authorizer struct{ engine *auth.Engine }

func account(k host.Key) auth.Account {
	return auth.Account{Principal: k.Principal, Server: k.Server, Label: k.Account}
}

// Authorize puts the account's credential on a request.
func (a *authorizer) Authorize(ctx context.Context, k host.Key, srv *config.Server, req *http.Request) error {
	return needsLogin(a.engine.Authorize(ctx, account(k), srv, req))
}

// Refused asks the engine whether one more try is worth it.
func (a *authorizer) Refused(ctx context.Context, k host.Key, srv config.Server, refusal *upstream.UnauthorizedError) error {
	return needsLogin(a.engine.Refused(ctx, account(k), srv, auth.Challenge{
		Status:           refusal.Status,
		ResourceMetadata: refusal.Param("resource_metadata"),
		Scope:            refusal.Param("scope"),
		Error:            refusal.Param("error"),
	}))
}

// recallLogin reads the login of a key, where its server may want one.
func (h *App) recallLogin(ctx context.Context, k host.Key) {
	if srv, ok := h.hosted.Server(k.Server); ok && srv.Transport != config.TransportStdio {
		_ = h.engine.Has(ctx, account(k)) // read now, so that the first request need not
	}
}

// statusTimeout bounds how long a status waits for the store.
const statusTimeout = 2 * time.Second

// AuthStatus tells where the login of a key stands.
func (a *authorizer) AuthStatus(k host.Key, _ config.Server) host.AuthStatus {
	ctx, stop := context.WithTimeout(context.Background(), statusTimeout)
	defer stop()
	s, err := a.engine.Status(ctx, account(k))
	if err != nil {
		return host.AuthStatus{Reason: err.Error()}
	}
	return host.AuthStatus{
		State: string(s.State), Reason: s.Reason, Command: s.Command, Expires: s.Expires, CanRefresh: s.CanRefresh,
	}
}

// needsLogin translates the engine's verdict into the host's.
func needsLogin(err error) error {
	if err == nil {
		return nil
	}
	var need *auth.NeedsLoginError
	if errors.As(err, &need) {
		return &host.NeedsLoginError{Reason: need.Reason, Command: need.Command}
	}
	return err
}

// Auth is the OAuth engine, for surfaces that log people in.
func (h *App) Auth() *auth.Engine { return h.engine }

// Account reads "server" or "server@label" of this host's principal.
func (h *App) Account(text string) auth.Account { return auth.ParseAccount(h.principal, text) }

// Target returns the definition behind an account with its placeholders filled in,
// ready to log in to.
func (h *App) Target(ctx context.Context, a auth.Account) (config.Server, error) {
	srv, ok := h.hosted.Server(a.Server)
	if !ok {
		return config.Server{}, h.hosted.Unknown(a.Server)
	}
	if a.Label != "" {
		if err := config.CheckLabel(a.Label); err != nil {
			return config.Server{}, err
		}
	}
	if srv.Transport == config.TransportStdio {
		return config.Server{}, fmt.Errorf("%s is a stdio server: its credentials come from its environment, there is nothing to log in to", a.Server)
	}
	if err := h.approved(ctx, srv); err != nil {
		return config.Server{}, &host.Error{Server: a.Server, Err: fmt.Errorf("%w: %w", host.ErrHeldBack, err), Advice: "usher approve " + a.Server}
	}
	return srv.Resolve(ctx, h.placeholders)
}

// Relogin makes what is connected use a login that has just changed: the connections
// of this account, and nobody else's.
func (h *App) Relogin(ctx context.Context, a auth.Account) error {
	k := host.Key{Principal: a.Principal, Server: a.Server, Account: a.Label}
	h.gate.Relogin(k)
	return h.hosted.Reconnect(ctx, k)
}
