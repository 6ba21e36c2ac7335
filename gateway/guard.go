package gateway

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// guard turns away what a web page could make a browser send: requests that came
// by a name that is not ours (DNS rebinding), and requests of foreign pages.
type guard struct {
	hosts   map[string]bool
	origins map[string]bool
}

func newGuard(hosts, origins []string) guard {
	g := guard{hosts: map[string]bool{}, origins: map[string]bool{}}
	for _, h := range hosts {
		g.hosts[strings.ToLower(h)] = true
	}
	for _, o := range origins {
		g.origins[strings.ToLower(strings.TrimSuffix(o, "/"))] = true
	}
	return g
}

// refuses returns the status a request is turned away with, 0 when it may pass. It
// looks at nothing but headers.
func (g guard) refuses(r *http.Request) (status int, why string) {
	if !g.ours(r) {
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

// ours reports whether the request is addressed to this machine, to the address it
// arrived at, or to a configured name.
func (g guard) ours(r *http.Request) bool {
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
func (g guard) page(origin, host string) bool {
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

// SocketPath is the path of an address of the form unix:PATH.
func SocketPath(addr string) (path string, ok bool) { return strings.CutPrefix(addr, "unix:") }

// CheckListen refuses addresses that others can reach unless they have to say who
// they are. addr is as for net.Listen, or unix:PATH: a socket that only the same user
// can connect to.
func CheckListen(addr string, authenticated bool) error {
	if path, ok := SocketPath(addr); ok {
		if path == "" {
			return errors.New("listen on \"unix:\": the path is missing; write unix:PATH, for example unix:/run/user/1000/usher/mcp.sock")
		}
		return nil
	}
	name, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("listen on %q: %w; write HOST:PORT, for example 127.0.0.1:8080", addr, err)
	}
	if authenticated || name == "localhost" {
		return nil
	}
	if ip, err := netip.ParseAddr(name); err == nil && ip.Unmap().IsLoopback() {
		return nil
	}
	return fmt.Errorf("listen on %q: %w; listen on 127.0.0.1, or set --auth", addr, ErrOpenDoor)
}

// ErrOpenDoor: the address can be reached from outside and nobody would have to say
// who they are.
var ErrOpenDoor = errors.New("others could reach it without authentication")
