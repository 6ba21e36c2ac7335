package auth

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	grantDevice     = "urn:ietf:params:oauth:grant-type:device_code"
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

// deviceRecord is the answer of a device authorization endpoint (RFC 8628).
type deviceRecord struct {
	Device
	Code kept `json:"device_code"`

	life time.Duration // of the code; 0: the server does not say
}

// authorizeDevice gets a code from the server.
func (w *web) authorizeDevice(ctx context.Context, p *provider, c client, scopes []string) (*deviceRecord, error) {
	form := url.Values{}
	if c.Method == methodBasic {
		form.Set("client_id", c.ID) // required here whatever the method
	}
	p.restrict(form, scopes)
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Accept": {"application/json"}}
	if err := c.authenticate(form, header); err != nil {
		return nil, err
	}
	u, err := checkEndpoint("the device authorization endpoint", p.meta.DeviceEndpoint)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	resp, body, err := w.exchange(ctx, http.MethodPost, u, header, form.Encode())
	if err != nil {
		return nil, err
	}
	return readDevice(resp, body, secretsOf(form, header))
}

// restrict puts scopes, resource and audience on a request for tokens or for a code.
func (p *provider) restrict(form url.Values, scopes []string) {
	if len(scopes) > 0 {
		form.Set("scope", strings.Join(scopes, " "))
	}
	if p.resource != "" {
		form.Set("resource", p.resource)
	}
	if p.audience != "" {
		form.Set("audience", p.audience)
	}
}

// readDevice reads the answer of a device authorization endpoint.
func readDevice(resp *http.Response, body []byte, secrets []string) (*deviceRecord, error) {
	te := &TokenError{Host: clean(resp.Request.URL.Host, 100), Status: resp.StatusCode, RetryAfter: retryAfter(resp.Header.Get("Retry-After"))}
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
	d := &deviceRecord{Code: keep(textField(fields, "device_code"))}
	d.UserCode = clean(textField(fields, "user_code"), 64)
	address := textField(fields, "verification_uri")
	if address == "" {
		address = textField(fields, "verification_url") // as Google spells it
	}
	page, err := pageURL("verification_uri", address)
	if err != nil || d.UserCode == "" || d.Code.IsZero() {
		te.Reason = "the answer has no code, or no page that may be shown"
		return nil, te
	}
	d.VerificationURI = page.String()
	if full, err := pageURL("verification_uri_complete", textField(fields, "verification_uri_complete")); err == nil && origin(full) == origin(page) {
		d.Complete = full.String()
	}
	if d.Interval = readLife(fields["interval"]); d.Interval == 0 {
		d.Interval = defaultInterval
	}
	d.life = min(readLife(fields["expires_in"]), maxDeviceLife)
	return d, nil
}
