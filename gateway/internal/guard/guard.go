package guard

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// Guard turns away what a web page could make a browser send: requests that came
// by a name that is not ours (DNS rebinding), and requests of foreign pages.
type Guard struct {
	hosts   map[string]bool
	origins map[string]bool
}

// New returns a guard for these host names ("name" or "name:port") and origins, beside
// those of this machine.
func New(hosts, origins []string) Guard {
	g := Guard{hosts: map[string]bool{}, origins: map[string]bool{}}
	for _, h := range hosts {
		g.hosts[strings.ToLower(h)] = true
	}
	for _, o := range origins {
		g.origins[strings.ToLower(strings.TrimSuffix(o, "/"))] = true
	}
	return g
}

// Refuses returns the status a request is turned away with, 0 when it may pass. It
// looks at nothing but headers.
func (g Guard) Refuses(r *http.Request) (status int, why string) {
	if !g.IsOurs(r) {
		return http.StatusMisdirectedRequest, fmt.Sprintf("host %.100q is not served here", r.Host)
	}
	origins := r.Header.Values("Origin")
	if len(origins) > 1 || len(origins) == 1 && !g.page(origins[0], r.Host) {
		return http.StatusForbidden, fmt.Sprintf("origin %.100q may not send requests", strings.Join(origins, ", "))
	}
	// Browsers say so even where they send no Origin.
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "", "none", "same-origin":
	default:
		if len(origins) == 0 {
			return http.StatusForbidden, "requests of other sites are not served"
		}
	}
	return 0, ""
}

// IsOurs reports whether the request is addressed to this machine, to the address it
// arrived at, or to a configured name.
func (g Guard) IsOurs(r *http.Request) bool {
	host := strings.ToLower(r.Host)
	if g.hosts[host] {
		return true
	}
	name, ok := hostName(host)
	if !ok {
		return false
	}
	if name == "localhost" || g.hosts[name] {
		return true
	}
	ip, err := netip.ParseAddr(name)
	if err != nil {
		return false
	}
	ip = ip.Unmap()
	if ip.IsLoopback() {
		return true
	}
	// An address is no name: nobody can point it elsewhere.
	local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return local != nil && ip.IsValid() && !ip.IsUnspecified() && local.AddrPort().Addr().Unmap() == ip
}

// hostName takes the port and the brackets off a Host header.
func hostName(host string) (string, bool) {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		name, rest, ok := strings.Cut(inner, "]")
		return name, ok && (rest == "" || isPort(rest))
	}
	name, port, has := strings.Cut(host, ":")
	return name, name != "" && (!has || isPort(":"+port))
}

func isPort(s string) bool {
	digits, ok := strings.CutPrefix(s, ":")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// page reports whether a web page of this origin may send requests: one that was
// served under the very host and port, or a configured one.
func (g Guard) page(origin, host string) bool {
	origin = strings.ToLower(origin)
	if g.origins[origin] {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Path != "" || u.RawQuery != "" {
		return false
	}
	return u.Host != "" && u.Host == strings.ToLower(host)
}
