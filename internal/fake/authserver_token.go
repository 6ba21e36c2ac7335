package fake

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	grantDevice    = "urn:ietf:params:oauth:grant-type:device_code"
	grantJWTBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	grantExchange  = "urn:ietf:params:oauth:grant-type:token-exchange"
)

// serveToken gives tokens.
func (s *AuthServer) serveToken(w http.ResponseWriter, r *http.Request) {
	form := readForm(r)
	grant := form.Get("grant_type")
	if v, on := s.sw.fire("token-slow", grant); on {
		select {
		case <-time.After(time.Duration(v.number(1000)) * time.Millisecond):
		case <-r.Context().Done():
		}
	}
	if s.refuseToken(w, r, form, grant) {
		return
	}
	answer, code, words := s.grantToken(r, form, grant)
	if code == "use_dpop_nonce" {
		w.Header().Set("DPoP-Nonce", s.currentNonce())
	}
	detail := code
	if code == "" {
		detail = "ok"
	}
	s.note(EventToken, grant, form.Get("client_id"), detail, form)
	if _, on := s.sw.fire("drop-after-commit", grant); on {
		panic(http.ErrAbortHandler)
	}
	if code != "" {
		status := http.StatusBadRequest
		if code == "invalid_client" {
			status = http.StatusUnauthorized
		}
		refuse(w, status, code, words)
		return
	}
	writeJSON(w, http.StatusOK, answer)
}

// refuseToken carries out the switches that answer before any work is done.
func (s *AuthServer) refuseToken(w http.ResponseWriter, r *http.Request, form url.Values, grant string) bool {
	note := func(detail string) { s.note(EventToken, grant, form.Get("client_id"), detail, form) }
	if _, on := s.sw.fire("drop-before", grant); on {
		note("dropped")
		panic(http.ErrAbortHandler)
	}
	if v, on := s.sw.fire("token-redirect", grant); on {
		note("redirect")
		w.Header().Set("Location", string(v))
		w.WriteHeader(http.StatusTemporaryRedirect)
		return true
	}
	if v, on := s.sw.fire("token-status", grant); on {
		note("status")
		http.Error(w, "<html>canary-body", v.number(503))
		return true
	}
	if v, on := s.sw.fire("token-error", grant); on {
		words := "as told"
		if _, echo := s.sw.get("echo-request"); echo {
			words = "bad request: " + form.Encode() + " " + r.Header.Get("Authorization")
		}
		note(v.text("invalid_grant"))
		refuse(w, http.StatusBadRequest, v.text("invalid_grant"), words)
		return true
	}
	return false
}

// grantToken does the work of one token request.
func (s *AuthServer) grantToken(r *http.Request, form url.Values, grant string) (answer map[string]any, code, words string) {
	c, problem := s.authenticate(r, form)
	if problem != "" {
		return nil, problem, ""
	}
	jkt, problem := s.checkProof(r, "", s.Issuer()+"/token")
	if problem != "" {
		return nil, problem, ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch grant {
	case "authorization_code":
		return s.fromCode(c, form, jkt)
	case "refresh_token":
		return s.fromRefresh(c, form, jkt)
	case grantDevice:
		return s.fromDevice(c, form, jkt)
	case "client_credentials":
		return s.issue(&family{client: c.ID, resource: form.Get("resource"), scopes: fields(form.Get("scope")), jkt: jkt}, ""), "", ""
	case grantJWTBearer:
		if !s.knows(form.Get("assertion")) {
			return nil, "invalid_grant", "unknown assertion"
		}
		return s.issue(&family{client: c.ID, resource: form.Get("resource"), scopes: fields(form.Get("scope")), jkt: jkt}, ""), "", ""
	case grantExchange:
		return s.exchange(form)
	}
	return nil, "unsupported_grant_type", ""
}

// authenticate finds out which client asks.
func (s *AuthServer) authenticate(r *http.Request, form url.Values) (AuthClient, string) {
	id, pass, basic := r.BasicAuth()
	if basic {
		id, _ = url.QueryUnescape(id)
		pass, _ = url.QueryUnescape(pass)
	} else {
		id, pass = form.Get("client_id"), form.Get("client_secret")
	}
	if _, cimd := s.sw.get("cimd"); cimd && strings.HasPrefix(id, "https://") && pass == "" {
		return AuthClient{ID: id}, ""
	}
	s.mu.Lock()
	c, ok := s.clients[id]
	s.mu.Unlock()
	if !ok {
		return AuthClient{}, "invalid_client"
	}
	switch {
	case c.Key != nil:
		if !validAssertion(form, c, s.Issuer()) {
			return c, "invalid_client"
		}
	case c.Secret != pass:
		return c, "invalid_client"
	case c.Secret != "" && c.Method == "client_secret_post" && basic, c.Secret != "" && c.Method != "client_secret_post" && !basic:
		return c, "invalid_client"
	}
	return c, ""
}

func (s *AuthServer) fromCode(c AuthClient, form url.Values, jkt string) (map[string]any, string, string) {
	code := s.codes[form.Get("code")]
	if code == nil || code.client != c.ID || code.redirect != form.Get("redirect_uri") {
		return nil, "invalid_grant", "unknown code"
	}
	if code.used {
		return nil, "invalid_grant", "code was used before"
	}
	sum := sha256.Sum256([]byte(form.Get("code_verifier")))
	if base64.RawURLEncoding.EncodeToString(sum[:]) != code.challenge {
		return nil, "invalid_grant", "wrong verifier"
	}
	if form.Get("resource") != code.resource {
		return nil, "invalid_target", "another resource than at the login"
	}
	if code.jkt != "" && code.jkt != jkt {
		return nil, "invalid_grant", "another key than at the login"
	}
	code.used = true
	writeDown(form.Get("code_verifier"))
	return s.issue(&family{client: c.ID, resource: code.resource, scopes: code.scopes, jkt: jkt}, "new"), "", ""
}

// fromRefresh rotates. A token that was rotated before ends the whole grant, unless
// that was so recently that the answer may have been lost.
func (s *AuthServer) fromRefresh(c AuthClient, form url.Values, jkt string) (map[string]any, string, string) {
	t := s.refresh[form.Get("refresh_token")]
	switch {
	case t == nil || t.family.client != c.ID:
		return nil, "invalid_grant", "unknown refresh token"
	case t.family.revoked:
		return nil, "invalid_grant", "revoked"
	case t.family.jkt != jkt:
		return nil, "invalid_grant", "another key"
	case t.family.resource != form.Get("resource"):
		return nil, "invalid_target", "another resource than at the login"
	}
	if !t.rotated.IsZero() && time.Since(t.rotated) > s.opts.Grace {
		t.family.revoked = true
		return nil, "invalid_grant", "reuse: the grant is revoked"
	}
	if _, on := s.sw.get("no-rotate"); on {
		return s.issue(t.family, ""), "", ""
	}
	if t.rotated.IsZero() {
		t.rotated = time.Now()
	}
	return s.issue(t.family, "new"), "", ""
}

func (s *AuthServer) fromDevice(c AuthClient, form url.Values, jkt string) (map[string]any, string, string) {
	d := s.devices[form.Get("device_code")]
	if d == nil || d.client != c.ID {
		return nil, "invalid_grant", "unknown device code"
	}
	early := time.Since(d.last) < d.interval
	d.last = time.Now()
	if early {
		d.interval += 5 * time.Second
		return nil, "slow_down", "polled too early"
	}
	if _, on := s.sw.fire("slow-down", grantDevice); on {
		d.interval += 5 * time.Second
		return nil, "slow_down", ""
	}
	switch {
	case time.Now().After(d.expires):
		return nil, "expired_token", ""
	case d.state == "pending":
		return nil, "authorization_pending", ""
	case d.state == "denied":
		return nil, "access_denied", ""
	}
	delete(s.devices, form.Get("device_code"))
	return s.issue(&family{client: c.ID, resource: d.resource, scopes: d.scopes, jkt: jkt}, "new"), "", ""
}

// exchange trades an identity for an ID-JAG.
func (s *AuthServer) exchange(form url.Values) (map[string]any, string, string) {
	const jag = "urn:ietf:params:oauth:token-type:id-jag"
	if form.Get("requested_token_type") != jag || form.Get("audience") == "" || form.Get("subject_token_type") != "urn:ietf:params:oauth:token-type:id_token" {
		return nil, "invalid_request", ""
	}
	if s.opts.ExchangeNext != "" && s.opts.ExchangeNext != form.Get("audience") {
		return nil, "invalid_target", ""
	}
	if !slices.Contains(s.opts.IDTokens, form.Get("subject_token")) {
		return nil, "invalid_grant", ""
	}
	token := secret("jag-")
	s.assertions[token] = true
	return map[string]any{"access_token": token, "issued_token_type": jag, "token_type": "N_A", "expires_in": 300}, "", ""
}

// Trust makes the server take assertions that another one issues.
func (s *AuthServer) Trust(other *AuthServer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trusted = other
}

// knows reports whether an assertion is good. It needs mu.
func (s *AuthServer) knows(assertion string) bool {
	if s.assertions[assertion] || s.trusted == nil {
		return s.assertions[assertion]
	}
	s.trusted.mu.Lock()
	defer s.trusted.mu.Unlock()
	return s.trusted.assertions[assertion]
}

// issue makes tokens of a grant. It needs mu.
func (s *AuthServer) issue(f *family, refresh string) map[string]any {
	if v, on := s.sw.get("narrow"); on {
		f.scopes = fields(strings.ReplaceAll(string(v), ",", " "))
	}
	access := secret("at-")
	s.access[access] = &accessToken{family: f, expires: time.Now().Add(s.opts.RealTTL)}
	answer := map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": int(s.opts.TTL.Seconds())}
	if f.jkt != "" {
		answer["token_type"] = "DPoP"
	}
	if len(f.scopes) > 0 {
		answer["scope"] = strings.Join(f.scopes, " ")
	}
	if v, on := s.sw.get("expires-in"); on {
		delete(answer, "expires_in")
		if v != "" {
			answer["expires_in"] = json.RawMessage(v)
		}
	}
	if _, none := s.sw.get("no-refresh"); refresh != "" && !none {
		token := secret("rt-")
		s.refresh[token] = &refreshToken{family: f}
		answer["refresh_token"] = token
	}
	return answer
}

// serveRevoke ends a grant (RFC 7009).
func (s *AuthServer) serveRevoke(w http.ResponseWriter, r *http.Request) {
	form := readForm(r)
	c, problem := s.authenticate(r, form)
	s.note(EventRevoke, form.Get("token_type_hint"), c.ID, problem, form)
	if problem != "" {
		refuse(w, http.StatusUnauthorized, problem, "")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.refresh[form.Get("token")]; t != nil {
		t.family.revoked = true
	}
	if t := s.access[form.Get("token")]; t != nil {
		t.family.revoked = true
	}
	w.WriteHeader(http.StatusOK)
}
