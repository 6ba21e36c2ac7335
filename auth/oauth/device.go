package oauth

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/usher-mcp/usher/internal/retry"
)

const (
	// GrantTypeDevice is the grant type of a login with a device code.
	GrantTypeDevice = "urn:ietf:params:oauth:grant-type:device_code"
	defaultInterval = 5 * time.Second
	maxDeviceLife   = time.Hour
)

// Device is what a person needs for a login with a code on another screen.
type Device struct {
	UserCode string `json:"user_code"`
	// VerificationURI is to be shown in full, beside the code.
	VerificationURI string `json:"verification_uri"`
	// Complete is the same page with the code filled in, for a QR code; empty when
	// the server has none. It is never opened without the code being shown.
	Complete string        `json:"verification_uri_complete,omitempty"`
	Interval time.Duration `json:"interval"`
}

// DeviceAuthorization is the answer of a device authorization endpoint (RFC 8628).
type DeviceAuthorization struct {
	Device
	Code StoredSecret `json:"device_code"`

	Life time.Duration `json:"-"` // of the code; 0: the server does not say
}

// AuthorizeDevice gets a code from the server.
func (w *Client) AuthorizeDevice(ctx context.Context, p *Provider, c Credentials, scopes []string) (*DeviceAuthorization, error) {
	form := url.Values{}
	if c.Method == MethodBasic {
		form.Set("client_id", c.ID) // required here whatever the method
	}
	p.restrict(form, scopes)
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Accept": {"application/json"}}
	if err := c.authenticate(form, header); err != nil {
		return nil, err
	}
	u, err := checkEndpoint("the device authorization endpoint", p.Metadata.DeviceEndpoint)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, TokenTimeout)
	defer cancel()
	resp, body, err := w.exchange(ctx, http.MethodPost, u, header, form.Encode())
	if err != nil {
		return nil, err
	}
	return readDevice(resp, body, secretsOf(form, header))
}

// restrict puts scopes, resource and audience on a request for tokens or for a code.
func (p *Provider) restrict(form url.Values, scopes []string) {
	if len(scopes) > 0 {
		form.Set("scope", strings.Join(scopes, " "))
	}
	if p.Resource != "" {
		form.Set("resource", p.Resource)
	}
	if p.Audience != "" {
		form.Set("audience", p.Audience)
	}
}

// readDevice reads the answer of a device authorization endpoint.
func readDevice(resp *http.Response, body []byte, secrets []string) (*DeviceAuthorization, error) {
	te := &TokenError{Host: Clean(resp.Request.URL.Host, 100), Status: resp.StatusCode, RetryAfter: retry.After(resp.Header.Get("Retry-After"))}
	fields, problem := readFields(resp.Header.Get("Content-Type"), body)
	switch code := textField(fields, "error"); {
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests:
		te.Reason = "it cannot serve the request now"
		return nil, te
	case problem != "":
		te.Reason = problem
		return nil, te
	case resp.StatusCode >= 400 || code != "":
		te.refusal(fields, code, secrets)
		return nil, te
	}
	d := &DeviceAuthorization{Code: NewStoredSecret(textField(fields, "device_code"))}
	d.UserCode = Clean(textField(fields, "user_code"), 64)
	address := textField(fields, "verification_uri")
	if address == "" {
		address = textField(fields, "verification_url") // as Google spells it
	}
	page, err := PageURL("verification_uri", address)
	if err != nil || d.UserCode == "" || d.Code.IsZero() {
		te.Reason = "the answer has no code, or no page that may be shown"
		return nil, te
	}
	d.VerificationURI = page.String()
	if full, err := PageURL("verification_uri_complete", textField(fields, "verification_uri_complete")); err == nil && Origin(full) == Origin(page) {
		d.Complete = full.String()
	}
	if d.Interval = readLife(fields["interval"]); d.Interval == 0 {
		d.Interval = defaultInterval
	}
	d.Life = min(readLife(fields["expires_in"]), maxDeviceLife)
	return d, nil
}
