package oauth

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
	MethodNone  = "none"
	MethodBasic = "client_secret_basic"
	MethodPost  = "client_secret_post"
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

// StoredSecret is a secret on its way into a sealed record: unlike that of a vault.Secret,
// its JSON form is the text. Only records that go to the store hold it.
type StoredSecret struct{ vault.Secret }

// NewStoredSecret wraps a text that goes into a record.
func NewStoredSecret(text string) StoredSecret { return StoredSecret{vault.NewSecret(text)} }

// MarshalJSON gives the text away, to the store.
func (k StoredSecret) MarshalJSON() ([]byte, error) { return json.Marshal(k.Reveal()) }

// UnmarshalJSON takes the text back.
func (k *StoredSecret) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	*k = NewStoredSecret(text)
	return nil
}

// Credentials is who we are at one authorization server.
type Credentials struct {
	ID     string       `json:"id"`
	Secret StoredSecret `json:"secret,omitzero"`
	Method string       `json:"method"`
	// Key signs assertions of private_key_jwt, which are addressed to Audience.
	Key      StoredSecret `json:"key,omitzero"`
	Audience string       `json:"audience,omitempty"`
	Source   string       `json:"source"`
}

// LogValue keeps the secrets out of logs.
func (c Credentials) LogValue() slog.Value { return slog.StringValue(c.ID) }

// pickMethod chooses how a client with or without a secret shows who it is: as the
// server lists, basic where it lists nothing, as RFC 8414 says.
func pickMethod(supported []string, hasSecret bool) string {
	if !hasSecret {
		return MethodNone
	}
	if len(supported) == 0 {
		return MethodBasic
	}
	for _, m := range []string{MethodBasic, MethodPost, MethodNone} {
		if slices.Contains(supported, m) {
			return m
		}
	}
	return MethodBasic
}

const (
	assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
	assertionLife = time.Minute
)

// authenticate puts on a form and a request header who we are.
func (c Credentials) authenticate(form url.Values, header http.Header) error {
	switch c.Method {
	case MethodBasic:
		// RFC 6749, section 2.3.1: form-encoded before they are put together.
		r := http.Request{Header: header}
		r.SetBasicAuth(url.QueryEscape(c.ID), url.QueryEscape(c.Secret.Reveal()))
	case MethodPost:
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
