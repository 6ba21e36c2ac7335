package oauth

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// checkEndpoint takes an address that this program will send requests to: https,
// or http on loopback, with a host and without user information. Errors do not
// quote the address beyond its host, which is all a person needs.
func checkEndpoint(what, raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s is not an address", what)
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("%s has the scheme %q; only https is taken", what, Clean(u.Scheme, 20))
	case u.Hostname() == "":
		return nil, fmt.Errorf("%s names no host", what)
	case !plainHost(u):
		return nil, fmt.Errorf("%s has a host name with characters that host names do not have", what)
	case u.User != nil:
		return nil, fmt.Errorf("%s holds a user name", what)
	case strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return nil, fmt.Errorf("%s holds a blank or a control character", what)
	case u.Scheme == "http" && !IsLoopback(u.Hostname()):
		return nil, fmt.Errorf("%s at %s is not encrypted; http is taken on loopback only", what, Clean(u.Host, 100))
	}
	return u, nil
}

// plainHost reports whether the host is a name or an address and nothing cleverer:
// net/url lets quotes and ampersands through.
func plainHost(u *url.URL) bool {
	if _, err := netip.ParseAddr(u.Hostname()); err == nil {
		return true
	}
	return !strings.ContainsFunc(u.Hostname(), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != '_'
	})
}

// PageURL makes an address that a person's browser may be sent to: checked like an
// endpoint and rebuilt from its parts, so that nothing a shell or an opener could take for
// an instruction is left as the server wrote it.
func PageURL(what, raw string) (*url.URL, error) {
	u, err := checkEndpoint(what, raw)
	if err != nil {
		return nil, err
	}
	if u.Fragment != "" {
		return nil, fmt.Errorf("%s has a fragment", what)
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("%s has a query that cannot be read", what)
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawQuery: query.Encode()}, nil
}

// IsLoopback reports host names that mean this machine without asking anybody.
func IsLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// Origin is scheme, host and port, in one spelling.
func Origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	return strings.ToLower(u.Scheme) + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// base is the address without path, as a person would write it.
func base(u *url.URL) string { return u.Scheme + "://" + u.Host }

// CanonicalResource is a server's address as a resource identifier: without fragment, and
// without the slash that stands for an empty path.
func CanonicalResource(u *url.URL) string {
	c := *u
	c.Fragment, c.RawFragment, c.User = "", "", nil
	c.Scheme, c.Host = strings.ToLower(c.Scheme), strings.ToLower(c.Host)
	if c.Path == "/" {
		c.Path = ""
	}
	return c.String()
}

// ResourceCovers reports whether a resource identifier that a server published can stand
// for the server's address: the same origin, and the same path or one above it.
func ResourceCovers(resource string, server *url.URL) error {
	r, err := url.Parse(resource)
	if err != nil || r.Host == "" || r.Fragment != "" {
		return errors.New("it is not an absolute address without fragment")
	}
	if Origin(r) != Origin(server) {
		return fmt.Errorf("it names %s and not %s", Clean(base(r), 100), base(server))
	}
	above, path := strings.TrimSuffix(r.Path, "/"), strings.TrimSuffix(server.Path, "/")
	if path != above && !strings.HasPrefix(path, above+"/") {
		return fmt.Errorf("it names the path %s, which is not above %s", Clean(r.Path, 100), server.Path)
	}
	return nil
}

// Clean makes foreign text fit for a line of a message: printable, on one line,
// and no longer than limit bytes or so.
func Clean(s string, limit int) string {
	var b strings.Builder
	for _, r := range s {
		if b.Len() >= limit {
			b.WriteString("…")
			break
		}
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0xfeff || r == 0xfffd {
			r = ' '
		}
		b.WriteRune(r)
	}
	return strings.TrimSpace(b.String())
}
