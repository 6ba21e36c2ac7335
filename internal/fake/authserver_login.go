package fake

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// serveMetadata publishes what the server offers.
func (s *AuthServer) serveMetadata(w http.ResponseWriter, r *http.Request) {
	s.note(EventMetadata, r.URL.Path, "", "", nil)
	if _, on := s.sw.get("no-metadata"); on {
		http.NotFound(w, r)
		return
	}
	if _, on := s.sw.get("only-oidc"); on && strings.Contains(r.URL.Path, "oauth-authorization-server") {
		http.NotFound(w, r)
		return
	}
	if v, on := s.sw.fire("metadata-redirect", ""); on {
		http.Redirect(w, r, string(v), http.StatusFound)
		return
	}
	if v, on := s.sw.fire("metadata-status", ""); on {
		http.Error(w, "canary-body", v.number(500))
		return
	}
	if _, on := s.sw.fire("metadata-html", ""); on {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!doctype html><p>canary-body") // the client has gone if this fails
		return
	}
	doc := s.metadata()
	if v, on := s.sw.get("metadata-huge"); on {
		doc["padding"] = strings.Repeat("x", v.number(2048)<<10)
	}
	writeJSON(w, http.StatusOK, doc)
}

func (s *AuthServer) metadata() map[string]any {
	issuer := s.Issuer()
	doc := map[string]any{
		"issuer": issuer, "authorization_endpoint": issuer + "/authorize", "token_endpoint": issuer + "/token",
		"registration_endpoint": issuer + "/register", "device_authorization_endpoint": issuer + "/device",
		"revocation_endpoint": issuer + "/revoke", "response_types_supported": []string{"code"},
		"code_challenge_methods_supported": []string{"S256"}, "authorization_response_iss_parameter_supported": true,
		"token_endpoint_auth_methods_supported": []string{"none"},
	}
	if s.opts.AuthMethods != nil {
		doc["token_endpoint_auth_methods_supported"] = s.opts.AuthMethods
	}
	if s.opts.Scopes != nil {
		doc["scopes_supported"] = s.opts.Scopes
	}
	for name, key := range map[string]string{
		"no-pkce": "code_challenge_methods_supported", "no-registration": "registration_endpoint", "no-device": "device_authorization_endpoint",
		"no-revocation": "revocation_endpoint", "iss-off": "authorization_response_iss_parameter_supported",
		"iss-unadvertised": "authorization_response_iss_parameter_supported",
	} {
		if _, on := s.sw.get(name); on {
			delete(doc, key)
		}
	}
	for name, key := range map[string]string{
		"issuer": "issuer", "authorize-url": "authorization_endpoint", "token-url": "token_endpoint",
		"register-url": "registration_endpoint", "device-url": "device_authorization_endpoint",
	} {
		if v, on := s.sw.get(name); on {
			doc[key] = string(v)
		}
	}
	if _, on := s.sw.get("plain-pkce"); on {
		doc["code_challenge_methods_supported"] = []string{"plain"}
	}
	if _, on := s.sw.get("cimd"); on {
		doc["client_id_metadata_document_supported"] = true
	}
	return doc
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client has gone if this fails
}

func refuse(w http.ResponseWriter, status int, code, words string) {
	writeJSON(w, status, map[string]string{"error": code, "error_description": words})
}

// serveAuthorize consents at once and sends the browser back.
func (s *AuthServer) serveAuthorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	back, err := url.Parse(q.Get("redirect_uri"))
	problem := s.checkAuthorize(q)
	s.note(EventAuthorize, "", q.Get("client_id"), problem, q)
	if problem != "" || err != nil {
		http.Error(w, problem, http.StatusBadRequest)
		return
	}
	answer := back.Query()
	answer.Set("state", q.Get("state"))
	if v, on := s.sw.fire("deny", ""); on {
		answer.Set("error", v.text("access_denied"))
		if words, on := s.sw.get("deny-words"); on {
			answer.Set("error_description", string(words))
		}
	} else if _, on := s.sw.get("no-resource"); on && q.Get("resource") != "" {
		answer.Set("error", "invalid_target")
	} else {
		answer.Set("code", s.newCode(q))
	}
	s.addIssuer(answer)
	back.RawQuery = answer.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

func (s *AuthServer) addIssuer(answer url.Values) {
	for _, name := range []string{"iss-absent", "iss-off"} {
		if _, on := s.sw.get(name); on {
			return
		}
	}
	answer.Set("iss", s.Issuer())
	if v, on := s.sw.fire("iss-wrong", ""); on {
		answer.Set("iss", v.text("https://evil.example"))
	}
}

func (s *AuthServer) checkAuthorize(q url.Values) string {
	s.mu.Lock()
	c, ok := s.clients[q.Get("client_id")]
	s.mu.Unlock()
	if _, cimd := s.sw.get("cimd"); cimd && strings.HasPrefix(q.Get("client_id"), "https://") {
		ok = true
	}
	switch {
	case !ok:
		return "unknown client"
	case c.Redirects != nil && !slices.ContainsFunc(c.Redirects, func(known string) bool { return sameRedirect(known, q.Get("redirect_uri")) }):
		return "unknown redirect address"
	case q.Get("response_type") != "code":
		return "unknown response type"
	case q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43:
		return "no code challenge"
	}
	return ""
}

// sameRedirect ignores the port of loopback addresses, as the standard says.
func sameRedirect(known, got string) bool {
	k, err1 := url.Parse(known)
	g, err2 := url.Parse(got)
	if err1 != nil || err2 != nil {
		return false
	}
	return known == got || k.Scheme == "http" && k.Hostname() == g.Hostname() && k.Path == g.Path
}

func (s *AuthServer) newCode(q url.Values) string {
	code := secret("code-")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.codes[code] = &authCode{
		client: q.Get("client_id"), redirect: q.Get("redirect_uri"), challenge: q.Get("code_challenge"),
		resource: q.Get("resource"), scopes: fields(q.Get("scope")), jkt: q.Get("dpop_jkt"),
	}
	return code
}

// serveRegister registers clients dynamically.
func (s *AuthServer) serveRegister(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		Redirects []string `json:"redirect_uris"`
		AppType   string   `json:"application_type"`
		Grants    []string `json:"grant_types"`
		Method    string   `json:"token_endpoint_auth_method"`
	}
	err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&ask)
	params := url.Values{"redirect_uris": ask.Redirects, "application_type": {ask.AppType}, "grant_types": ask.Grants, "method": {ask.Method}}
	if v, on := s.sw.fire("register-status", ""); on {
		s.note(EventRegister, "", "", "status", params)
		http.Error(w, "canary-body", v.number(500))
		return
	}
	_, noIP := s.sw.get("no-loopback-ip")
	switch {
	case err != nil || len(ask.Redirects) == 0 || ask.AppType != "native" && ask.AppType != "web":
		s.note(EventRegister, "", "", "invalid", params)
		refuse(w, http.StatusBadRequest, "invalid_client_metadata", "redirect_uris and application_type are needed")
		return
	case noIP && strings.Contains(ask.Redirects[0], "127.0.0.1"):
		s.note(EventRegister, "", "", "redirect refused", params)
		refuse(w, http.StatusBadRequest, "invalid_redirect_uri", "use localhost")
		return
	}
	c := AuthClient{ID: secret("client-"), Redirects: ask.Redirects, Method: "none"}
	answer := map[string]any{"client_id": c.ID, "redirect_uris": ask.Redirects, "registration_client_uri": s.Issuer() + "/register/" + c.ID, "registration_access_token": secret("rat-")}
	if v, on := s.sw.get("register-secret"); on {
		c.Secret, c.Method = secret("secret-"), v.text("client_secret_basic")
		answer["client_secret"], answer["client_secret_expires_at"] = c.Secret, 0
	}
	answer["token_endpoint_auth_method"] = c.Method
	s.mu.Lock()
	s.clients[c.ID] = c
	s.mu.Unlock()
	s.note(EventRegister, "", c.ID, "ok", params)
	writeJSON(w, http.StatusCreated, answer)
}

// serveDeregister deletes a registration (RFC 7592).
func (s *AuthServer) serveDeregister(w http.ResponseWriter, r *http.Request) {
	id := strings.TrimPrefix(r.URL.Path, s.opts.Path+"/register/")
	s.note(EventRegister, r.Method, id, "", nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.clients[id]; !ok || r.Method != http.MethodDelete || !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer rat-") {
		http.Error(w, "unauthorized", http.StatusUnauthorized)
		return
	}
	delete(s.clients, id)
	w.WriteHeader(http.StatusNoContent)
}

// serveDevice begins a login on another screen.
func (s *AuthServer) serveDevice(w http.ResponseWriter, r *http.Request) {
	form := readForm(r)
	c, problem := s.authenticate(r, form)
	s.note(EventDevice, "", c.ID, problem, form)
	if problem != "" {
		refuse(w, http.StatusUnauthorized, problem, "")
		return
	}
	code := secret("device-")
	s.mu.Lock()
	s.count++
	s.devices[code] = &deviceLogin{
		client: c.ID, resource: form.Get("resource"), scopes: fields(form.Get("scope")), state: "pending",
		interval: time.Duration(s.opts.Interval) * time.Second, expires: time.Now().Add(10 * time.Minute), last: time.Now(),
	}
	s.mu.Unlock()
	writeJSON(w, http.StatusOK, map[string]any{
		"device_code": code, "user_code": "WDJB-MJHT", "verification_uri": s.Issuer() + "/activate",
		"verification_uri_complete": s.Issuer() + "/activate?user_code=WDJB-MJHT", "expires_in": 600, "interval": s.opts.Interval,
	})
}

func readForm(r *http.Request) url.Values {
	raw, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20)) // what did not arrive is missing in the form
	form, _ := url.ParseQuery(string(raw))
	return form
}
