package oauth

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
)

// Revoke ends tokens at their server (RFC 7009): the refresh token, which by the
// standard takes the access tokens along, or the access token where there is none.
func (w *Client) Revoke(ctx context.Context, endpoint string, c Credentials, access, refresh StoredSecret) (bool, error) {
	u, err := checkEndpoint("the revocation endpoint", endpoint)
	if err != nil {
		return false, err
	}
	token, hint := refresh, "refresh_token"
	if token.IsZero() {
		token, hint = access, "access_token"
	}
	form := url.Values{"token": {token.Reveal()}, "token_type_hint": {hint}}
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Accept": {"application/json"}}
	if err := c.authenticate(form, header); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, TokenTimeout)
	defer cancel()
	resp, body, err := w.exchange(ctx, http.MethodPost, u, header, form.Encode())
	if err != nil {
		return false, err
	}
	if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusNoContent {
		return true, nil
	}
	te := &TokenError{Host: Clean(u.Host, 100), Status: resp.StatusCode, Reason: "it did not revoke the token"}
	if fields, problem := readFields(resp.Header.Get("Content-Type"), body); problem == "" && resp.StatusCode < 500 {
		te.refusal(fields, textField(fields, "error"), secretsOf(form, header))
	}
	return false, te
}

// Deregister deletes a registration at its server, where that is offered.
func (w *Client) Deregister(ctx context.Context, r *Registration) error {
	if r.Manage == "" || r.Token.IsZero() {
		return nil
	}
	u, err := checkEndpoint("registration_client_uri", r.Manage)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	resp, _, err := w.exchange(ctx, http.MethodDelete, u, http.Header{"Authorization": {"Bearer " + r.Token.Reveal()}}, "")
	if err != nil {
		return fmt.Errorf("delete the client registration at the server: %w", err)
	}
	if resp.StatusCode >= 300 && resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusUnauthorized {
		return fmt.Errorf("delete the client registration at the server: HTTP %d", resp.StatusCode)
	}
	return nil
}
