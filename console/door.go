package console

import (
	"crypto/rand"
	"crypto/sha256"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
)

const cookieName = "usher_connect"

// maxLinks is how many links that nobody has used yet are good at a time, and how
// many browsers may be let in.
const maxLinks = 8

// door lets browsers in that come with a link. It keeps hashes only, and comparing
// them tells nobody anything.
type door struct {
	mu       sync.Mutex // guards links, sessions
	links    [][sha256.Size]byte
	sessions [][sha256.Size]byte
}

// mint makes the secret part of a link.
func (d *door) mint() string {
	token := rand.Text()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.links = remember(d.links, token)
	return token
}

// enter trades the secret of a link for that of a cookie; false when it is not good,
// or not any more.
func (d *door) enter(token string) (session string, ok bool) {
	sum := sha256.Sum256([]byte(token))
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, l := range d.links {
		if l == sum {
			d.links = append(d.links[:i:i], d.links[i+1:]...)
			session = rand.Text()
			d.sessions = remember(d.sessions, session)
			return session, true
		}
	}
	return "", false
}

// knows reports whether a request comes from a browser that was let in.
func (d *door) knows(r *http.Request) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, cookie := range r.CookiesNamed(cookieName) {
		sum := sha256.Sum256([]byte(cookie.Value))
		for _, s := range d.sessions {
			if s == sum {
				return true
			}
		}
	}
	return false
}

func remember(list [][sha256.Size]byte, token string) [][sha256.Size]byte {
	if len(list) >= maxLinks {
		list = list[1:]
	}
	return append(list, sha256.Sum256([]byte(token)))
}

// cookie is what a browser that was let in shows from then on.
func cookie(session string) *http.Cookie {
	return &http.Cookie{Name: cookieName, Value: session, Path: "/connect", HttpOnly: true, SameSite: http.SameSiteStrictMode}
}

// strange says what is wrong with a request before anything is looked at: one that
// does not come from this machine, was meant for another name that leads here, or was
// made by a page of somebody else. 0 when nothing is.
func strange(r *http.Request) (status int, words string) {
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !remote.Addr().Unmap().IsLoopback() {
		return http.StatusForbidden, "This page is for this machine only."
	}
	if !loopbackHost(r.Host) {
		return http.StatusMisdirectedRequest, "This page is not here."
	}
	if o := r.Header.Values("Origin"); len(o) > 0 && (len(o) > 1 || o[0] != "http://"+r.Host) {
		return http.StatusForbidden, "This page takes no requests from other pages."
	}
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "", "none", "same-origin":
	default:
		// A person may follow a link from anywhere; pages may not ask for anything.
		if r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document" {
			return http.StatusForbidden, "This page takes no requests from other pages."
		}
	}
	if r.Method != http.MethodGet {
		return http.StatusMethodNotAllowed, "This page is only looked at."
	}
	if speculative(r.Header) {
		return http.StatusServiceUnavailable, "Not before somebody looks."
	}
	return 0, ""
}

// loopbackHost reports whether the Host of a request means this machine whatever any
// name server says. The port may be another one: it may be forwarded.
func loopbackHost(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// speculative reports requests that a browser makes before anybody asked for them:
// they must not use a link up.
func speculative(h http.Header) bool {
	for _, name := range []string{"Sec-Purpose", "Purpose", "X-Purpose", "X-Moz"} {
		v := strings.ToLower(h.Get(name))
		if strings.Contains(v, "prefetch") || strings.Contains(v, "prerender") || strings.Contains(v, "preview") {
			return true
		}
	}
	return false
}
