package authn

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/usher-mcp/usher/internal/limit"
)

// issuerKeys fetches the keys of an issuer, at most once per interval: anybody can
// make up a token with an unknown key id, for which the OIDC library asks the issuer.
// In between, such tokens are checked against the keys that are known. It is the
// transport of the library's key set, which has one request in flight at most.
type issuerKeys struct {
	next http.RoundTripper

	mu     sync.Mutex // guards what follows
	asked  time.Time
	loaded bool // keys were fetched at least once
}

var errKeysAsked = errors.New("the issuer was asked for its keys a moment ago")

// client fetches keys with everything else as in base.
func (k *issuerKeys) client(base *http.Client) *http.Client {
	c := *base
	if k.next = base.Transport; k.next == nil {
		k.next = http.DefaultTransport
	}
	c.Transport = k
	return &c
}

// RoundTrip implements [http.RoundTripper].
func (k *issuerKeys) RoundTrip(r *http.Request) (*http.Response, error) {
	if !k.due() {
		return nil, errKeysAsked
	}
	resp, err := k.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		k.mu.Lock()
		k.loaded = true
		k.mu.Unlock()
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, limit.IssuerKeysBytes), resp.Body}
	return resp, nil
}

// due reports whether the issuer may be asked now, and counts it.
func (k *issuerKeys) due() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.asked.IsZero() && time.Since(k.asked) < limit.IssuerKeysInterval {
		return false
	}
	k.asked = time.Now()
	return true
}

// missing reports whether the issuer was asked and gave no keys yet: then a token
// cannot be called invalid.
func (k *issuerKeys) missing() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.loaded && !k.asked.IsZero()
}
