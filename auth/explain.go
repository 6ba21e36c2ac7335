package auth

import (
	"context"
	"strings"

	"github.com/usher-mcp/usher/config"
)

// Explanation is what a login would do, found out without doing it: nothing is
// registered, written down or opened.
type Explanation struct {
	Account   Account
	ServerURL string
	// Challenge is what the server says to a request without credential.
	Challenge Challenge
	// ResourceMetadata and Metadata are where the documents were found; "" when
	// there are none.
	ResourceMetadata string
	Metadata         string
	Issuer           string
	Endpoints        map[string]string // by their name in the metadata
	Resource         string            // "" when it is left out
	Scopes           []string
	ScopesFrom       string // where they come from
	// Client says which way to a client id is taken: a Source constant, "stored"
	// for a registration of an earlier login, or "" when there is none.
	Client   string
	ClientID string
	// Flows lists what is possible.
	Flows []Flow
	// Authorize is the request to the consent page without what changes each time.
	Authorize map[string]string
	// Token is the request for tokens by the names of its parameters.
	Token []string
	// Problems are reasons for which the login would fail.
	Problems []string
}

// Explain finds out what a login to the server would do. What it found before it
// failed is returned beside the error.
func (e *Engine) Explain(ctx context.Context, a Account, srv config.Server, options *LoginOptions) (*Explanation, error) {
	a = a.normal()
	x := &Explanation{Account: a, ServerURL: srv.URL, Endpoints: map[string]string{}}
	b, err := e.prepare(ctx, a, srv, options)
	if err != nil {
		return x, err
	}
	defer b.web.close()
	x.Challenge, x.Issuer, x.Resource = b.p.challenge, b.p.issuer, b.p.resource
	x.Metadata = b.p.meta.from
	if b.p.prm != nil {
		x.ResourceMetadata = b.p.prm.from
	}
	for name, address := range map[string]string{
		"authorization_endpoint": b.p.meta.AuthorizationEndpoint, "token_endpoint": b.p.meta.TokenEndpoint,
		"registration_endpoint": b.p.meta.RegistrationEndpoint, "device_authorization_endpoint": b.p.meta.DeviceEndpoint,
		"revocation_endpoint": b.p.meta.RevocationEndpoint,
	} {
		if address != "" {
			x.Endpoints[name] = address
		}
	}
	x.Scopes = b.scopes
	_, x.ScopesFrom = chooseScopes(oauthOf(srv), b.p)
	var fixed bool
	if b.to, fixed = fixedRedirect(srv, b.opt); !fixed {
		b.to = redirect{uri: "http://127.0.0.1:PORT" + callbackPath, class: classLoopback}
	}
	if err := e.explainClient(ctx, b, x); err != nil {
		return x, err
	}
	x.explainFlows(b, srv)
	return x, nil
}

// explainClient follows the order of registration without registering.
func (e *Engine) explainClient(ctx context.Context, b *begun, x *Explanation) error {
	c, ok, err := chosenClient(b.p, oauthOf(b.srv))
	if err != nil {
		return err
	}
	stored, err := e.loadRegistration(ctx, b.p.bind(), b.to.group())
	switch {
	case err != nil:
		return err
	case ok:
		x.Client = c.Source
	case stored != nil && stored.usable(b.to):
		c, x.Client = stored.Client, "stored"
		stored.adapt(&b.to)
	case b.p.meta.RegistrationEndpoint != "":
		c, x.Client = client{ID: "(given at registration)", Method: wantedMethod(b.p.meta.AuthMethods)}, SourceDynamic
	default:
		x.Problems = append(x.Problems, noClient(b.p, b.to).Error())
	}
	b.client, x.ClientID = c, c.ID
	return nil
}

func (x *Explanation) explainFlows(b *begun, srv config.Server) {
	if m := machineFlow(srv); m != "" {
		x.Flows = []Flow{m}
		x.Token = []string{"grant_type", "scope", "resource"}
		return
	}
	if b.p.meta.DeviceEndpoint != "" {
		x.Flows = append(x.Flows, FlowDevice)
	}
	if b.p.meta.AuthorizationEndpoint == "" {
		return
	}
	if !b.p.meta.pkce() {
		x.Problems = append(x.Problems, "the authorization server does not advertise PKCE with S256")
	} else if _, err := pageURL("the authorization endpoint", b.p.meta.AuthorizationEndpoint); err != nil {
		x.Problems = append(x.Problems, err.Error())
	} else {
		x.Flows = append([]Flow{FlowCode}, x.Flows...)
	}
	x.Authorize = b.p.authorizeParams(b.authorizeRequest())
	x.Authorize["code_challenge_method"] = "S256"
	x.Token = []string{"grant_type", "code", "redirect_uri", "code_verifier"}
	if b.p.resource != "" {
		x.Token = append(x.Token, "resource")
	}
	switch b.client.Method {
	case methodBasic:
		x.Token = append(x.Token, "Authorization: Basic")
	default:
		x.Token = append(x.Token, "client_id")
		if b.client.Method != methodNone {
			x.Token = append(x.Token, strings.TrimPrefix(b.client.Method, "client_"))
		}
	}
}
