package loopback

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/usher-mcp/usher/auth/oauth"
)

// ReadRequest reads the answer out of a request; false when it was none, and has got
// its page.
func ReadRequest(w http.ResponseWriter, r *http.Request) (cb oauth.Callback, ok bool) {
	switch {
	case r.Method == http.MethodHead || r.Method == http.MethodOptions:
		writePage(w, http.StatusOK, Unknown) // looks, and must not consume
		return cb, false
	case r.Method != http.MethodGet:
		writePage(w, http.StatusMethodNotAllowed, Unknown)
		return cb, false
	case speculative(r.Header):
		// The browser asks again when the person really goes there.
		writePage(w, http.StatusServiceUnavailable, Unknown)
		return cb, false
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err == nil {
		cb, err = oauth.ReadCallback(q)
	}
	if err != nil {
		writePage(w, http.StatusBadRequest, Unknown)
	}
	return cb, err == nil
}

// speculative reports requests that a browser makes before anybody asked for them.
func speculative(h http.Header) bool {
	for _, name := range []string{"Sec-Purpose", "Purpose", "X-Purpose", "X-Moz"} {
		v := strings.ToLower(h.Get(name))
		if strings.Contains(v, "prefetch") || strings.Contains(v, "prerender") || strings.Contains(v, "preview") {
			return true
		}
	}
	return false
}
