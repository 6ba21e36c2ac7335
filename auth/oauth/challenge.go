package oauth

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/vault"
)

// Challenge is what a server said when it refused a request: the parameters of its
// WWW-Authenticate header that matter here.
type Challenge struct {
	// Status is 401, or 403 when the token was too narrow; servers may use others for an
	// invalid token.
	Status int
	// ResourceMetadata, Scope and Error are parameters of the challenge.
	ResourceMetadata string
	Scope            string
	Error            string
	// Operation is what was asked, such as "tools/call search", so that asking for
	// more permission is bounded for each operation. Empty: as observed by
	// [Engine.Transport], or not known.
	Operation string
	// Nonce is the DPoP-Nonce header. Empty: as observed by Transport.
	Nonce string
	// Credential is the Authorization header of the refused request. Zero: as
	// observed by Transport.
	Credential vault.Secret
}

// InsufficientScope reports whether the token was fine but too narrow.
func (c Challenge) InsufficientScope() bool {
	return c.Status == http.StatusForbidden && c.Error != CodeInvalidToken || c.Error == "insufficient_scope"
}

// CodeInvalidToken is the error code of a challenge to an invalid token. The standard
// defines it for status 401 only; some servers send it with another status.
const CodeInvalidToken = "invalid_token"

// ChallengedWith reports whether a challenge of an answer names this error.
func ChallengedWith(resp *http.Response, code string) bool {
	return slices.ContainsFunc(wire.ParseChallenges(resp.Header.Values("WWW-Authenticate")), func(ch wire.Challenge) bool {
		return (ch.Scheme == "bearer" || ch.Scheme == "dpop") && ch.Params["error"] == code
	})
}

const probeTimeout = 10 * time.Second

// probe asks the server something harmless without a credential, to hear its
// challenge. A server that does not answer with one is no problem: there are
// well-known places to look at.
func (w *Client) probe(ctx context.Context, address string) Challenge {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	body := strings.NewReader(`{"jsonrpc":"2.0","id":"usher-login","method":"tools/list","params":{}}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, body)
	if err != nil {
		return Challenge{}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	client := &http.Client{Transport: w.rt, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return Challenge{} // discovery will say what is wrong with the network
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10) // only so that the connection can be kept
	if resp.StatusCode != http.StatusUnauthorized {
		return Challenge{}
	}
	return ParseChallenge(resp)
}

// ParseChallenge reads the first Bearer or DPoP challenge of an answer.
func ParseChallenge(resp *http.Response) Challenge {
	c := Challenge{Status: resp.StatusCode, Nonce: resp.Header.Get("DPoP-Nonce")}
	for _, ch := range wire.ParseChallenges(resp.Header.Values("WWW-Authenticate")) {
		if ch.Scheme == "bearer" || ch.Scheme == "dpop" {
			c.ResourceMetadata, c.Scope, c.Error = ch.Params["resource_metadata"], ch.Params["scope"], ch.Params["error"]
			return c
		}
	}
	return c
}
