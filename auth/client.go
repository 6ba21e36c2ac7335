package auth

import (
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/usher-mcp/usher/vault"
)

// Ways a client shows at a token endpoint who it is.
const (
	methodNone  = "none"
	methodBasic = "client_secret_basic"
	methodPost  = "client_secret_post"
	methodJWT   = "private_key_jwt"
)

// Where a client id came from.
const (
	// SourceConfigured: oauth.clientId.
	SourceConfigured = "configured"
	// SourceDocument: oauth.clientMetadataUrl.
	SourceDocument = "document"
	// SourceDynamic: registered at the authorization server by this program.
	SourceDynamic = "dynamic"
)

// kept is a secret on its way into a sealed record: unlike that of a vault.Secret,
// its JSON form is the text. Only records that go to the store hold it.
type kept struct{ vault.Secret }

func keep(text string) kept { return kept{vault.NewSecret(text)} }

// MarshalJSON gives the text away, to the store.
func (k kept) MarshalJSON() ([]byte, error) { return json.Marshal(k.Reveal()) }

// UnmarshalJSON takes the text back.
func (k *kept) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	*k = keep(text)
	return nil
}

// client is who we are at one authorization server.
type client struct {
	ID     string `json:"id"`
	Secret kept   `json:"secret,omitzero"`
	Method string `json:"method"`
	// Key signs assertions of private_key_jwt, which are addressed to Audience.
	Key      kept   `json:"key,omitzero"`
	Audience string `json:"audience,omitempty"`
	Source   string `json:"source"`
}

// LogValue keeps the secrets out of logs.
func (c client) LogValue() slog.Value { return slog.StringValue(c.ID) }

// pickMethod chooses how a client with or without a secret shows who it is: as the
// server lists, basic where it lists nothing, as RFC 8414 says.
func pickMethod(supported []string, hasSecret bool) string {
	if !hasSecret {
		return methodNone
	}
	if len(supported) == 0 {
		return methodBasic
	}
	for _, m := range []string{methodBasic, methodPost, methodNone} {
		if slices.Contains(supported, m) {
			return m
		}
	}
	return methodBasic
}

const (
	assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
	assertionLife = time.Minute
)

// authenticate puts on a form and a request header who we are.
func (c client) authenticate(form url.Values, header http.Header) error {
	switch c.Method {
	case methodBasic:
		// RFC 6749, section 2.3.1: form-encoded before they are put together.
		r := http.Request{Header: header}
		r.SetBasicAuth(url.QueryEscape(c.ID), url.QueryEscape(c.Secret.Reveal()))
	case methodPost:
		form.Set("client_id", c.ID)
		form.Set("client_secret", c.Secret.Reveal())
	case methodJWT:
		s, err := parseKey(c.Key.Reveal())
		if err != nil {
			return err
		}
		now := time.Now()
		assertion, err := s.sign(map[string]any{"typ": "JWT"}, map[string]any{
			"iss": c.ID, "sub": c.ID, "aud": c.Audience, "jti": rand.Text(),
			"iat": now.Unix(), "exp": now.Add(assertionLife).Unix(),
		})
		if err != nil {
			return err
		}
		form.Set("client_id", c.ID)
		form.Set("client_assertion_type", assertionType)
		form.Set("client_assertion", assertion)
	default:
		if c.ID != "" {
			form.Set("client_id", c.ID)
		}
	}
	return nil
}

func hasControl(s string) bool {
	return slices.ContainsFunc([]byte(s), func(b byte) bool { return b < ' ' || b >= 0x7f })
}
