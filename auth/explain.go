package auth

import (
	"context"
	"strings"

	"github.com/usher-mcp/usher/auth/grants"
	"github.com/usher-mcp/usher/auth/loopback"
	"github.com/usher-mcp/usher/auth/oauth"
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
	a = a.Normal()
	x := &Explanation{Account: a, ServerURL: srv.URL, Endpoints: map[string]string{}}
	b, err := e.preparer.prepare(ctx, a, srv, options)
	if err != nil {
		return x, err
	}
	defer b.web.Close()
	x.Challenge, x.Issuer, x.Resource = b.p.Challenge, b.p.Issuer, b.p.Resource
	x.Metadata = b.p.Metadata.FoundAt
	if b.p.ResourceMetadata != nil {
		x.ResourceMetadata = b.p.ResourceMetadata.FoundAt
	}
	for name, address := range map[string]string{
		"authorization_endpoint": b.p.Metadata.AuthorizationEndpoint, "token_endpoint": b.p.Metadata.TokenEndpoint,
		"registration_endpoint": b.p.Metadata.RegistrationEndpoint, "device_authorization_endpoint": b.p.Metadata.DeviceEndpoint,
		"revocation_endpoint": b.p.Metadata.RevocationEndpoint,
	} {
		if address != "" {
			x.Endpoints[name] = address
		}
	}
	x.Scopes = b.scopes
	_, x.ScopesFrom = oauth.ChooseScopes(oauth.SettingsOf(srv), b.p)
	var fixed bool
	if b.to, fixed = fixedRedirect(srv, b.opt); !fixed {
		b.to = oauth.Redirect{URI: "http://127.0.0.1:PORT" + loopback.Path, Class: oauth.ClassLoopback}
	}
	if err := e.clients.explain(ctx, b, x); err != nil {
		return x, err
	}
	x.explainFlows(b, srv)
	return x, nil
}

// explain follows the order of registration without registering.
func (rg *registrar) explain(ctx context.Context, b *preparedLogin, x *Explanation) error {
	c, ok, err := oauth.ConfiguredClient(b.p, oauth.SettingsOf(b.srv))
	if err != nil {
		return err
	}
	stored, err := rg.load(ctx, b.p.Binding(), b.to.Group())
	switch {
	case err != nil:
		return err
	case ok:
		x.Client = c.Source
	case stored != nil && stored.Usable(b.to):
		c, x.Client = stored.Client, "stored"
		stored.Adapt(&b.to)
	case b.p.Metadata.RegistrationEndpoint != "":
		c, x.Client = oauth.Credentials{ID: "(given at registration)", Method: oauth.RegistrationMethod(b.p.Metadata.AuthMethods)}, oauth.SourceDynamic
	default:
		x.Problems = append(x.Problems, oauth.NoClientError(b.p, b.to).Error())
	}
	b.client, x.ClientID = c, c.ID
	return nil
}

func (x *Explanation) explainFlows(b *preparedLogin, srv config.Server) {
	if m := grants.MachineFlow(srv); m != "" {
		x.Flows = []Flow{m}
		x.Token = []string{"grant_type", "scope", "resource"}
		return
	}
	if b.p.Metadata.DeviceEndpoint != "" {
		x.Flows = append(x.Flows, FlowDevice)
	}
	if b.p.Metadata.AuthorizationEndpoint == "" {
		return
	}
	if !b.p.Metadata.SupportsPKCE() {
		x.Problems = append(x.Problems, "the authorization server does not advertise PKCE with S256")
	} else if _, err := oauth.PageURL("the authorization endpoint", b.p.Metadata.AuthorizationEndpoint); err != nil {
		x.Problems = append(x.Problems, err.Error())
	} else {
		x.Flows = append([]Flow{FlowCode}, x.Flows...)
	}
	x.Authorize = b.p.AuthorizeParams(b.authorizeRequest())
	x.Authorize["code_challenge_method"] = "S256"
	x.Token = []string{"grant_type", "code", "redirect_uri", "code_verifier"}
	if b.p.Resource != "" {
		x.Token = append(x.Token, "resource")
	}
	switch b.client.Method {
	case oauth.MethodBasic:
		x.Token = append(x.Token, "Authorization: Basic")
	default:
		x.Token = append(x.Token, "client_id")
		if b.client.Method != oauth.MethodNone {
			x.Token = append(x.Token, strings.TrimPrefix(b.client.Method, "client_"))
		}
	}
}
