package fake

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// AuthOptions say what an AuthServer offers and how it misbehaves. The zero value is
// a well-behaved authorization server for public clients that rotates refresh tokens
// and notices their reuse.
type AuthOptions struct {
	Name         string        // name in the ledger; default "as"
	Path         string        // path of the issuer, such as "/tenant"; default none
	TTL          time.Duration // life of access tokens; default one hour
	RealTTL      time.Duration // how long they are accepted in truth; default TTL
	Grace        time.Duration // how long a rotated refresh token still works; default not at all
	Scopes       []string      // scopes_supported; default none
	AuthMethods  []string      // token_endpoint_auth_methods_supported; default none
	Clients      []AuthClient  // known from the start
	Interval     int           // of device logins, in seconds; default 5
	Assertions   []string      // JWTs that the jwt-bearer grant takes, beside those it issued as ID-JAG
	IDTokens     []string      // identities that the token exchange takes
	ExchangeNext string        // audience that an ID-JAG is issued for; default any
	Switches     []string      // misbehaviours, see [AuthSwitches]
	Ledger       *Ledger       // default a new one in memory
}

// AuthClient is a client of an AuthServer.
type AuthClient struct {
	ID        string
	Secret    string           // "" for a public client
	Method    string           // token_endpoint_auth_method; default none or client_secret_basic
	Key       *ecdsa.PublicKey // of private_key_jwt
	Redirects []string         // nil takes any
}

// Events of an authorization server in the ledger. Method says which grant or
// document, Name which client, Params holds the parameters, Detail the result.
const (
	EventMetadata  = "metadata"
	EventAuthorize = "authorize"
	EventToken     = "token"
	EventRegister  = "register"
	EventDevice    = "device"
	EventRevoke    = "revoke"
	EventResource  = "resource" // a request to a protected resource
)

// AuthServer is a fake authorization server.
type AuthServer struct {
	opts   AuthOptions
	ledger *Ledger
	sw     *switchSet

	mu         sync.Mutex // guards what follows
	base       string
	clients    map[string]AuthClient
	codes      map[string]*authCode
	access     map[string]*accessToken
	refresh    map[string]*refreshToken
	devices    map[string]*deviceLogin
	assertions map[string]bool
	trusted    *AuthServer
	proofs     map[string]bool
	nonce      string
	intercept  map[string]Interceptor
	count      int
}

// Interceptor may answer in place of an endpoint; next is the endpoint.
type Interceptor func(w http.ResponseWriter, r *http.Request, next http.Handler)

type authCode struct {
	client, redirect, challenge, resource, jkt string
	scopes                                     []string
	used                                       bool
}

// family is a grant: all tokens that came from one login.
type family struct {
	client, resource, jkt string
	scopes                []string
	revoked               bool
}

type accessToken struct {
	family  *family
	expires time.Time
}

type refreshToken struct {
	family  *family
	rotated time.Time // zero while it is the current one
}

type deviceLogin struct {
	client, resource string
	scopes           []string
	state            string // pending, approved or denied
	last             time.Time
	interval         time.Duration
	expires          time.Time
}

// NewAuth makes an authorization server. It panics when a switch is unknown.
func NewAuth(o *AuthOptions) *AuthServer {
	s := &AuthServer{
		clients: map[string]AuthClient{}, codes: map[string]*authCode{}, access: map[string]*accessToken{},
		refresh: map[string]*refreshToken{}, devices: map[string]*deviceLogin{}, assertions: map[string]bool{},
		proofs: map[string]bool{}, intercept: map[string]Interceptor{},
	}
	if o != nil {
		s.opts = *o
	}
	if s.opts.Name == "" {
		s.opts.Name = "as"
	}
	if s.opts.TTL == 0 {
		s.opts.TTL = time.Hour
	}
	if s.opts.RealTTL == 0 {
		s.opts.RealTTL = s.opts.TTL
	}
	if s.opts.Interval == 0 {
		s.opts.Interval = 5
	}
	for _, c := range s.opts.Clients {
		s.clients[c.ID] = c
	}
	for _, a := range s.opts.Assertions {
		s.assertions[a] = true
	}
	s.ledger = s.opts.Ledger
	if s.ledger == nil {
		s.ledger = NewLedger()
	}
	s.sw = newAuthSwitches(s.opts.Switches)
	return s
}

// Ledger returns what the server was asked so far.
func (s *AuthServer) Ledger() *Ledger { return s.ledger }

// Set turns a switch on, or changes it. It panics when the switch is unknown.
func (s *AuthServer) Set(text string) { s.sw.set(mustParseAuth(text)) }

// Clear turns a switch off.
func (s *AuthServer) Clear(name string) { s.sw.clear(name) }

// Intercept puts f before an endpoint ("token", "authorize", "register", "device",
// "revoke", "metadata"); nil takes it away.
func (s *AuthServer) Intercept(endpoint string, f Interceptor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intercept[endpoint] = f
}

// Serve says under which address the handler is reached, when it is not by Listen.
func (s *AuthServer) Serve(base string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.base = base
}

// Listen serves on a free port of the loopback interface and returns the issuer and
// a function that stops it.
func (s *AuthServer) Listen() (issuer string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	s.Serve("http://" + l.Addr().String())
	hs := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = hs.Serve(l) // ends with http.ErrServerClosed
	}()
	return s.Issuer(), func() {
		_ = hs.Close()
		<-done
	}, nil
}

// Issuer is the server's name for itself.
func (s *AuthServer) Issuer() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.base + s.opts.Path
}

// Handler serves all endpoints.
func (s *AuthServer) Handler() http.Handler {
	mux := http.NewServeMux()
	p := s.opts.Path
	for path, e := range map[string]struct {
		name string
		f    http.HandlerFunc
	}{
		"/.well-known/oauth-authorization-server" + p: {"metadata", s.serveMetadata},
		"/.well-known/openid-configuration" + p:       {"metadata", s.serveMetadata},
		p + "/.well-known/openid-configuration":       {"metadata", s.serveMetadata},
		p + "/authorize":                              {"authorize", s.serveAuthorize},
		p + "/token":                                  {"token", s.serveToken},
		p + "/register":                               {"register", s.serveRegister},
		p + "/register/":                              {"register", s.serveDeregister},
		p + "/device":                                 {"device", s.serveDevice},
		p + "/revoke":                                 {"revoke", s.serveRevoke},
	} {
		mux.Handle(path, s.intercepted(e.name, e.f))
	}
	return mux
}

func (s *AuthServer) intercepted(name string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		f := s.intercept[name]
		s.mu.Unlock()
		if f != nil {
			f(w, r, next)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// note enters something into the ledger.
func (s *AuthServer) note(event, method, name, detail string, params url.Values) {
	flat := map[string]string{}
	for k, v := range params {
		flat[k] = strings.Join(v, " ")
	}
	raw, _ := json.Marshal(flat) // strings always encode
	s.ledger.Add(Entry{Server: s.opts.Name, Event: event, Method: method, Name: name, Detail: detail, Params: raw})
}

// Requests returns the ledger's entries of one kind, of one method unless empty.
func (s *AuthServer) Requests(event, method string) []Entry {
	return s.ledger.Find(func(e Entry) bool {
		return e.Server == s.opts.Name && e.Event == event && (method == "" || e.Method == method)
	})
}

// Param returns a parameter of an entry of an authorization server.
func (e Entry) Param(name string) string {
	var flat map[string]string
	_ = json.Unmarshal(e.Params, &flat) // no parameters, no value
	return flat[name]
}

// Expire makes all access tokens bad, as the end of their life does.
func (s *AuthServer) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.access {
		t.expires = time.Time{}
	}
}

// RevokeAll ends every grant.
func (s *AuthServer) RevokeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.refresh {
		t.family.revoked = true
	}
	for _, t := range s.access {
		t.family.revoked = true
	}
}

// ForgetClients forgets every registered client, as a purge does.
func (s *AuthServer) ForgetClients() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients = map[string]AuthClient{}
	for _, c := range s.opts.Clients {
		s.clients[c.ID] = c
	}
}

// Decide answers all device logins that wait.
func (s *AuthServer) Decide(approve bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.devices {
		if d.state == "pending" {
			d.state = map[bool]string{true: "approved", false: "denied"}[approve]
		}
	}
}

// Consent does what a person with a browser does: it opens the page and follows it
// to the redirect address, which it returns without going there.
func (s *AuthServer) Consent(ctx context.Context, page string) (*url.URL, error) {
	rec := &memoryResponse{header: http.Header{}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return nil, err
	}
	s.Handler().ServeHTTP(rec, req)
	return url.Parse(rec.header.Get("Location"))
}

// memoryResponse is a response nobody sends.
type memoryResponse struct {
	header http.Header
	status int
}

func (m *memoryResponse) Header() http.Header         { return m.header }
func (m *memoryResponse) Write(p []byte) (int, error) { return len(p), nil }
func (m *memoryResponse) WriteHeader(status int)      { m.status = status }

// secret makes an unguessable text with a prefix that shows in failures.
func secret(prefix string) string { return prefix + rand.Text() }

func fields(scope string) []string { return slices.Compact(strings.Fields(scope)) }
