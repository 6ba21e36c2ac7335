package grants

import (
	"crypto/sha256"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/vault"
)

// Transport watches the requests that [Manager.Authorize] put credentials on, so that
// a refusal is laid at the door of the token it met and not of a newer one, and so
// that DPoP nonces are learned. It changes nothing. Base carries the requests; nil
// means http.DefaultTransport.
//
// Without it [Manager.Refused] goes by what it can guess.
func (m *Manager) Transport(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	m.env.tokens.watch()
	return &watcher{env: m.env, base: base}
}

type watcher struct {
	env  *Env
	base http.RoundTripper
}

// RoundTrip sends the request and looks at the answer.
func (w *watcher) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.base.RoundTrip(req)
	if err != nil {
		return resp, err
	}
	w.env.nonces.Set(req.URL, resp.Header.Get("DPoP-Nonce"))
	_, text, ok := strings.Cut(req.Header.Get("Authorization"), " ")
	if !ok {
		return resp, nil
	}
	token := vault.NewSecret(text)
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		if !oauth.ChallengedWith(resp, "use_dpop_nonce") {
			w.env.tokens.refused(token, "")
		}
	case resp.StatusCode >= 400 && oauth.ChallengedWith(resp, oauth.CodeInvalidToken):
		w.env.tokens.refused(token, "")
	case resp.StatusCode == http.StatusForbidden:
		w.env.tokens.tooNarrow(token, operationOf(req))
	case resp.StatusCode < 300, resp.StatusCode >= 400 && resp.StatusCode < 500:
		w.env.tokens.accepted(token)
	}
	return resp, nil
}

// CloseIdleConnections passes the wish on.
func (w *watcher) CloseIdleConnections() {
	if c, ok := w.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// maxOperation is how much of a request is read to name what it asks.
const maxOperation = 1 << 20

// operationOf names what an MCP request asks, such as "tools/call search".
func operationOf(req *http.Request) string {
	if req.GetBody == nil {
		return ""
	}
	body, err := req.GetBody()
	if err != nil {
		return ""
	}
	defer func() { _ = body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(body, maxOperation))
	if err != nil {
		return ""
	}
	var m struct {
		Method string `json:"method"`
		Params struct {
			Name string `json:"name"`
			URI  string `json:"uri"`
		} `json:"params"`
	}
	_ = json.Unmarshal(raw, &m) // what cannot be read has no name
	return oauth.Clean(strings.TrimSpace(m.Method+" "+m.Params.Name+m.Params.URI), 200)
}

// tokenLog remembers what became of the tokens that were used, by their hash.
type tokenLog struct {
	mu       sync.Mutex // guards everything below
	by       map[[sha256.Size]byte]*tokenSeen
	watching bool
}

type tokenSeen struct {
	handed    bool      // put on a request by this process
	renewed   time.Time // when this process got it by renewing; zero: otherwise
	good, bad bool      // the server has accepted it, has refused it
	hopeless  bool      // refused from the start
	operation string
}

// maxTokens bounds the book. Forgetting costs at most a needless renewal.
const maxTokens = 4096

// of returns the entry of a token, making one if add is set. It needs mu.
func (b *tokenLog) of(token vault.Secret, add bool) *tokenSeen {
	key := sha256.Sum256([]byte(token.Reveal()))
	s := b.by[key]
	if s == nil && add {
		if b.by == nil || len(b.by) >= maxTokens {
			b.by = map[[sha256.Size]byte]*tokenSeen{}
		}
		s = &tokenSeen{}
		b.by[key] = s
	}
	if s == nil {
		return &tokenSeen{}
	}
	return s
}

// note changes the entry of a token.
func (b *tokenLog) note(token vault.Secret, add bool, change func(*tokenSeen)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(b.of(token, add))
}

func (b *tokenLog) handed(t vault.Secret) { b.note(t, true, func(s *tokenSeen) { s.handed = true }) }

// minted takes in a token that the authorization server has just issued, for a login
// or in place of an older one.
func (b *tokenLog) minted(t vault.Secret, renewed bool) {
	b.note(t, true, func(s *tokenSeen) {
		*s = tokenSeen{}
		if renewed {
			s.renewed = time.Now()
		}
	})
}

func (b *tokenLog) accepted(t vault.Secret) {
	// A refusal stands: responses to older requests may arrive after it.
	b.note(t, false, func(s *tokenSeen) { s.good, s.hopeless = true, false })
}

func (b *tokenLog) refused(t vault.Secret, operation string) {
	b.note(t, true, func(s *tokenSeen) {
		s.bad, s.operation = true, operation
		if !s.good && !s.renewed.IsZero() && time.Since(s.renewed) < young {
			s.hopeless = true
		}
	})
}

// tooNarrow: the token itself is accepted, but not for this operation.
func (b *tokenLog) tooNarrow(t vault.Secret, operation string) {
	b.note(t, false, func(s *tokenSeen) { s.good, s.bad, s.operation = true, true, operation })
}

func (b *tokenLog) isRefused(t vault.Secret) (bad bool) {
	b.note(t, false, func(s *tokenSeen) { bad = s.bad })
	return bad
}

func (b *tokenLog) wasHanded(t vault.Secret) (handed bool) {
	b.note(t, false, func(s *tokenSeen) { handed = s.handed })
	return handed
}

func (b *tokenLog) operation(t vault.Secret) (op string) {
	b.note(t, false, func(s *tokenSeen) { op = s.operation })
	return op
}

// isHopeless reports whether a token that has just been renewed was refused before
// it was ever accepted. When nobody watches, any refusal soon after counts. A token
// that is old by now may be refused for its age.
func (b *tokenLog) isHopeless(t vault.Secret) (hopeless bool) {
	b.note(t, false, func(s *tokenSeen) {
		age := time.Since(s.renewed)
		hopeless = s.hopeless && age < old || !b.watching && !s.renewed.IsZero() && age < young
	})
	return hopeless
}

func (b *tokenLog) watch() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watching = true
}

func (b *tokenLog) watched() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.watching
}
