package logins

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/upstream"
)

// authorizer is the host.Authorizer of an OAuth engine.
type authorizer struct{ engine *auth.Engine }

// NewAuthorizer lets a host put the engine's credentials on requests.
func NewAuthorizer(e *auth.Engine) host.Authorizer { return &authorizer{e} }

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

// needsLogin translates the engine's error into the host's.
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
