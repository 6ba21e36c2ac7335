package inspect

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
)

// login finds out whether a login could succeed, without beginning one.
func (x *examiner) login(ctx context.Context, srv config.Server, d *diagnosis) {
	if srv.Transport == config.TransportStdio {
		return
	}
	account := x.host.Logins().DefaultAccount(srv.Name)
	target, err := x.host.Logins().Target(ctx, account)
	if err != nil {
		d.add(checkProblem, "discovery", cmdutil.HintOf(err), "%s", cmdutil.PlainCause(srv.Name, err))
		return
	}
	e, err := x.host.Auth().Explain(ctx, account, target, nil)
	if e.Issuer != "" {
		d.add(checkOK, "discovery", "", "%sissuer %s", through(e), e.Issuer)
	}
	if err != nil {
		d.add(checkProblem, "discovery", cmdutil.HintOf(err), "%v", err)
		return
	}
	for _, problem := range e.Problems {
		d.add(checkProblem, "registration", "usher auth explain "+srv.Name, "%s", problem)
	}
	if len(e.Problems) == 0 {
		d.add(checkOK, "registration", "", "%s", clientWord(e.Client))
	}
}

func through(e *auth.Explanation) string {
	if e.ResourceMetadata != "" {
		return "protected resource → "
	}
	return ""
}

// clientWord says where the client id comes from.
func clientWord(source string) string {
	switch source {
	case auth.SourceDynamic:
		return "registers itself"
	case auth.SourceConfigured:
		return "oauth.clientId of the definition"
	case auth.SourceDocument:
		return "client id metadata document"
	case "stored":
		return "registered at an earlier login"
	}
	return cmp.Or(source, "none is needed")
}

// token tells how long the login lasts, where there is one.
func (x *examiner) token(ctx context.Context, srv config.Server, d *diagnosis) {
	if srv.Transport == config.TransportStdio {
		return
	}
	s, err := x.host.Auth().Status(ctx, x.host.Logins().DefaultAccount(srv.Name))
	switch {
	case err != nil:
		d.add(checkProblem, "token", "", "it cannot be read: %v", err)
	case s.State == auth.StateNone:
	case s.Trouble != "":
		d.add(checkNote, "token", "", "%s, but the last renewal failed: %s", lasts(s, time.Now()), cmdutil.CleanLine(s.Trouble))
	default:
		d.add(checkOK, "token", "", "%s", lasts(s, time.Now()))
	}
}

func lasts(s auth.Status, now time.Time) string {
	text := "the server does not say how long it lasts"
	if !s.Expires.IsZero() {
		text = fmt.Sprintf("lasts %s", Spoken(s.Expires.Sub(now)))
	}
	if s.CanRefresh {
		text += ", refreshes"
	}
	return text
}
