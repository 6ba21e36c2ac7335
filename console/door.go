package console

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// maxLinks is how many links that nobody has used yet are good at a time, and how
// many browsers may be let in.
const maxLinks = 8

// How long a link waits to be used, and a browser may stay away.
const (
	linkLife    = 10 * time.Minute
	sessionIdle = 12 * time.Hour
)

type digest = [sha256.Size]byte

// door lets browsers in that come with a link. It keeps hashes only, and comparing
// them tells nobody anything.
type door struct {
	// cookie is what the name of the cookie begins with, and path where it is sent to.
	cookie, path string
	// secure keeps the cookie off connections without TLS.
	secure bool

	mu       sync.Mutex // guards links, sessions
	links    []link
	sessions []*session
}

type link struct {
	sum  digest
	made time.Time
}

// session is a browser that was let in.
type session struct {
	sum  digest
	csrf string // what its forms carry
	seen time.Time
}

// mint makes the secret part of a link.
func (d *door) mint() string {
	token := rand.Text()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.links) >= maxLinks {
		d.links = d.links[1:]
	}
	d.links = append(d.links, link{sha256.Sum256([]byte(token)), time.Now()})
	return token
}

// enter trades the secret of a link for that of a cookie; false when it is not good,
// or not any more.
func (d *door) enter(token string) (secret string, ok bool) {
	sum := sha256.Sum256([]byte(token))
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, l := range d.links {
		if l.sum != sum {
			continue
		}
		d.links = append(d.links[:i:i], d.links[i+1:]...)
		if time.Since(l.made) > linkLife {
			return "", false
		}
		secret = rand.Text()
		if len(d.sessions) >= maxLinks {
			d.sessions = d.sessions[1:]
		}
		d.sessions = append(d.sessions, &session{sum: sha256.Sum256([]byte(secret)), csrf: rand.Text(), seen: time.Now()})
		return secret, true
	}
	return "", false
}

// session returns the session of a request, nil when it comes from a browser that
// was not let in.
func (d *door) session(r *http.Request) *session {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, cookie := range r.Cookies() {
		if !strings.HasPrefix(cookie.Name, d.cookie) {
			continue
		}
		sum := sha256.Sum256([]byte(cookie.Value))
		for _, s := range d.sessions {
			if s.sum == sum && time.Since(s.seen) < sessionIdle {
				s.seen = time.Now()
				return s
			}
		}
	}
	return nil
}

// knows reports whether a request comes from a browser that was let in.
func (d *door) knows(r *http.Request) bool { return d.session(r) != nil }

// own reports whether a form was made for this very session.
func (s *session) own(token string) bool {
	return subtle.ConstantTimeCompare([]byte(s.csrf), []byte(token)) == 1
}

// let gives a browser the cookie that it shows from then on. Its name has the port in
// it: browsers do not tell the cookies of ports apart, and several instances on one
// machine must not show out each other's browsers.
func (d *door) let(w http.ResponseWriter, r *http.Request, secret string) {
	name := d.cookie
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		name += "_" + port
	}
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: secret, Path: d.path, Secure: d.secure, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
}

// local says what is wrong with a request that does not come from this machine, or
// was meant for another name that leads here. 0 when nothing is.
func local(r *http.Request) (status int, words string) {
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !remote.Addr().Unmap().IsLoopback() {
		return http.StatusForbidden, "This page is for this machine only."
	}
	if !loopbackHost(r.Host) {
		return http.StatusMisdirectedRequest, "This page is not here."
	}
	return 0, ""
}

// foreign says what is wrong with a request that a page of somebody else made, or
// that nobody asked for yet. 0 when nothing is.
func foreign(r *http.Request) (status int, words string) {
	if o := r.Header.Values("Origin"); len(o) > 0 && (len(o) > 1 || o[0] != "http://"+r.Host && o[0] != "https://"+r.Host) {
		return http.StatusForbidden, "This page takes no requests from other pages."
	}
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "", "none", "same-origin":
	default:
		// A person may follow a link from anywhere; pages may not ask for anything.
		if r.Method != http.MethodGet || r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document" {
			return http.StatusForbidden, "This page takes no requests from other pages."
		}
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
