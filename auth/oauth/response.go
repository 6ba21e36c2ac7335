package oauth

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/internal/retry"
	"github.com/usher-mcp/usher/vault"
)

// maxLife is the longest life of a token that is believed.
const maxLife = 365 * 24 * time.Hour

// TokenResponse is what a token endpoint gave.
type TokenResponse struct {
	Access  vault.Secret
	Refresh vault.Secret // zero: none in the answer
	Type    string       // "Bearer", "DPoP", "N_A"
	Scopes  []string     // nil: not said
	Life    time.Duration
	Extra   map[string]json.RawMessage // fields beside those above
	fields  map[string]json.RawMessage // all fields
}

// readTokenResponse makes sense of any answer of a token endpoint. Authorization servers
// answer in odd ways: errors with status 200, numbers as strings, forms in place of
// JSON, pages of HTML. Secrets lists what was sent and must not be repeated.
func readTokenResponse(resp *http.Response, body []byte, secrets []string) (*TokenResponse, error) {
	te := &TokenError{Host: Clean(resp.Request.URL.Host, 100), Status: resp.StatusCode, RetryAfter: retry.After(resp.Header.Get("Retry-After"))}
	status := resp.StatusCode
	fields, problem := readFields(resp.Header.Get("Content-Type"), body)
	switch {
	case status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout:
		te.Reason = "it cannot serve the request now"
		return nil, te
	case status >= 300 && status < 400:
		te.Reason = "it redirects, which is not followed with secrets"
		return nil, te
	case problem != "":
		te.Reason = problem
		te.lost = status < 300 && problem == brokenOff
		return nil, te
	}
	if code := textField(fields, "error"); status >= 400 || code != "" && textField(fields, "access_token") == "" {
		te.refusal(fields, code, secrets)
		return nil, te
	}
	return readTokens(fields, te)
}

// What readFields finds wrong with a body.
const (
	brokenOff = "the answer broke off"
	notJSON   = "the answer is not JSON"
)

func readFields(contentType string, body []byte) (map[string]json.RawMessage, string) {
	body = bytes.TrimSpace(body)
	if strings.HasPrefix(contentType, "application/x-www-form-urlencoded") || strings.HasPrefix(contentType, "text/plain") && bytes.HasPrefix(body, []byte("access_token=")) {
		return readForm(body)
	}
	var fields map[string]json.RawMessage
	err := json.Unmarshal(body, &fields)
	switch {
	case err == nil && fields != nil:
		return fields, ""
	case len(body) == 0:
		return nil, brokenOff
	case body[0] == '{' && !json.Valid(body) && body[len(body)-1] != '}':
		return nil, brokenOff
	}
	return nil, notJSON
}

func readForm(body []byte) (map[string]json.RawMessage, string) {
	form, err := url.ParseQuery(string(body))
	if err != nil || len(form) == 0 {
		return nil, notJSON
	}
	fields := map[string]json.RawMessage{}
	for k, v := range form {
		fields[k], _ = json.Marshal(v[0]) // a string always encodes
	}
	return fields, ""
}

// codeShape is what an error code looks like; anything else may be a body in
// disguise.
var codeShape = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.:-]{0,63}$`) })

// ValidErrorCode reports whether text looks like an OAuth error code.
func ValidErrorCode(text string) bool { return codeShape().MatchString(text) }

// refusal fills in an error answer.
func (e *TokenError) refusal(fields map[string]json.RawMessage, code string, secrets []string) {
	if !ValidErrorCode(code) || echoes(code, secrets) {
		e.Reason = "it refused without saying why"
		if code == "" && e.Status < 400 {
			e.Reason = notJSON
		}
		return
	}
	e.Code = code
	if words := textField(fields, "error_description"); !echoes(words, secrets) {
		e.Words = CleanDescription(words)
	}
}

// opaque is text that might be a credential rather than words.
var opaque = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^\s"'(),;:]{28,}`) })

// CleanDescription makes a server's description fit to be shown.
func CleanDescription(words string) string {
	return opaque().ReplaceAllString(Clean(words, 200), "…")
}

// echoes reports whether text repeats a secret, as it is or encoded.
func echoes(text string, secrets []string) bool {
	for _, s := range secrets {
		if len(s) < 4 {
			continue
		}
		for _, form := range []string{s, url.QueryEscape(s), url.PathEscape(s), base64.StdEncoding.EncodeToString([]byte(s))} {
			if strings.Contains(text, form) {
				return true
			}
		}
		// A part of it is as bad.
		if n := 12; len(s) > n {
			for i := 0; i+n <= len(s); i += n / 2 {
				if strings.Contains(text, s[i:i+n]) {
					return true
				}
			}
		}
	}
	return false
}

// readTokens takes the tokens out of a successful answer.
func readTokens(fields map[string]json.RawMessage, te *TokenError) (*TokenResponse, error) {
	a := &TokenResponse{fields: fields, Extra: map[string]json.RawMessage{}, Life: readLife(fields["expires_in"]), Scopes: readScopes(fields["scope"])}
	if r := textField(fields, "refresh_token"); headerSafe(r) && len(r) <= limit.IssuedTokenBytes {
		a.Refresh = vault.NewSecret(r)
	}
	access := textField(fields, "access_token")
	switch {
	case access == "":
		te.Reason = "the answer has no access_token"
	case !headerSafe(access):
		te.Reason = "the access_token cannot stand in a header"
	case len(access) > limit.IssuedTokenBytes:
		te.Reason = "the access_token is too large"
	}
	switch typ := textField(fields, "token_type"); strings.ToLower(typ) {
	case "", "bearer":
		a.Type = "Bearer"
	case "dpop":
		a.Type = "DPoP"
	case "n_a":
		a.Type = "N_A"
	default:
		te.Reason = "the token is of a type that is not supported"
	}
	size := 0
	for k, v := range fields {
		switch k {
		case "access_token", "refresh_token", "token_type", "expires_in", "scope":
		default:
			a.Extra[k] = v
			size += len(k) + len(v)
		}
	}
	if size > limit.IssuedTokenBytes {
		a.Extra = nil // nothing needs them
	}
	if te.Reason != "" {
		// What there is of it may still be worth keeping: a rotated refresh token.
		return a, te
	}
	a.Access = vault.NewSecret(access)
	return a, nil
}

// textField returns a field that is a string, else "".
func textField(fields map[string]json.RawMessage, name string) string {
	var s string
	_ = json.Unmarshal(fields[name], &s) // anything else counts as absent
	return s
}

// readLife reads expires_in. Nothing, nonsense, zero and less mean that the life is
// unknown (0): the token is used until the server refuses it.
func readLife(raw json.RawMessage) time.Duration {
	text := string(bytes.TrimSpace(raw))
	var s string
	if json.Unmarshal(raw, &s) == nil {
		text = strings.TrimSpace(s)
	}
	if strings.ContainsAny(text, "xX_pPnN") { // hexadecimal, NaN, Inf, null: no seconds
		return 0
	}
	seconds, err := strconv.ParseFloat(text, 64)
	switch {
	case math.IsInf(seconds, 1):
		return maxLife
	case err != nil || math.IsNaN(seconds) || seconds <= 0:
		return 0
	case seconds >= maxLife.Seconds():
		return maxLife
	}
	return time.Duration(seconds * float64(time.Second))
}

// readScopes reads scope as a string with blanks between, or as a list.
func readScopes(raw json.RawMessage) []string {
	var s string
	var list []string
	switch {
	case json.Unmarshal(raw, &s) == nil && s != "":
		list = strings.Fields(s)
	case json.Unmarshal(raw, &list) == nil:
		list = UnionScopes(list)
	}
	if CheckScopes(list) != nil {
		return nil // as if nothing had been said
	}
	return list
}

// headerSafe reports whether a token can stand in a header as it is.
func headerSafe(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}
