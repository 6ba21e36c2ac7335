package fake

import (
	"context"
	"net/http"
	"strings"
)

// refuse applies what answers an HTTP request before it is read as a message, and
// reports whether it did. GET and DELETE stand for their own method.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, method string) bool {
	fired := func(name string) (value, bool) {
		v, ok := s.sw.fire(name, method)
		if ok {
			s.note(nil, Entry{Event: EventFault, Name: name, Method: method, Transport: "http", Headers: interesting(r.Header)})
		}
		return v, ok
	}
	if token, on := s.sw.get("unauthorized"); on && r.Header.Get("Authorization") != "Bearer "+token.text("secret") {
		if _, ok := fired("unauthorized"); ok {
			w.Header().Set("WWW-Authenticate", s.challenge(`Bearer realm="fake"`))
			s.writeBody(w, http.StatusUnauthorized, method)
			return true
		}
	}
	if r.Method != http.MethodPost {
		return false
	}
	if v, ok := fired("http-status"); ok {
		if c := s.challenge(""); c != "" {
			w.Header().Set("WWW-Authenticate", c)
		}
		if v, ok := s.sw.get("retry-after"); ok {
			w.Header().Set("Retry-After", v.text("1"))
		}
		s.writeBody(w, v.number(http.StatusInternalServerError), method)
		return true
	}
	if v, ok := fired("redirect"); ok {
		w.Header().Set("Location", string(v))
		w.WriteHeader(http.StatusTemporaryRedirect)
		return true
	}
	if v, ok := fired("redirect-308"); ok {
		w.Header().Set("Location", string(v))
		w.WriteHeader(http.StatusPermanentRedirect)
		return true
	}
	if _, ok := fired("html"); ok {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(page))
		return true
	}
	return false
}

const page = `<!doctype html><html><head><title>Sign in</title></head><body><h1>Sign in to continue</h1><script>alert(1)</script></body></html>`

// challenge is the WWW-Authenticate header; def when the switch is off.
func (s *Server) challenge(def string) string {
	if v, ok := s.sw.get("challenge"); ok {
		return v.text("Bearer")
	}
	return def
}

func (s *Server) writeBody(w http.ResponseWriter, status int, method string) {
	kind := "html"
	if v, ok := s.sw.get("body"); ok {
		kind = v.text(kind)
	}
	body := map[string][2]string{
		"html": {"text/html", page},
		"text": {"text/plain", strings.ToLower(http.StatusText(status))},
		"json": {"application/json", `{"error":"invalid_token","error_description":"it is invalid"}`},
		"rpc":  {"application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"refused"}}`},
	}[kind]
	if body[0] != "" {
		w.Header().Set("Content-Type", body[0])
	}
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body[1]))
}

// joined returns a context that ends with either of two.
func joined(a, b context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(a)
	unhook := context.AfterFunc(b, cancel)
	return ctx, func() {
		unhook()
		cancel()
	}
}
