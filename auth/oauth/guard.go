package oauth

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/address"
	"github.com/usher-mcp/usher/internal/pattern"
)

// ErrAddress marks a connection that was refused because of where it would go.
var ErrAddress = errors.New("address refused")

// fetchGuard decides which addresses the login to one server may connect to. Documents
// and addresses found during discovery are the words of strangers: they must not
// make this program knock at private doors. The decision is made on the resolved
// address, when the connection is made, so that a name that changes its address
// between check and use gains nothing.
type fetchGuard struct {
	Bounds
	lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)

	mu      sync.Mutex // guards proxies, and Ports of bounds
	proxies map[string]bool
}

// Bounds is what a guard goes by. It is kept with logins, so that another process
// finishes or ends them within the same bounds.
type Bounds struct {
	Server string   `json:"server,omitempty"` // host of the configured server
	Port   string   `json:"port,omitempty"`   // its port; "" in records of older versions: any
	Ports  []string `json:"ports,omitempty"`  // of authorization servers found at the same address
	Allow  []string `json:"allow,omitempty"`  // oauth.discovery.allow
	Named  []string `json:"named,omitempty"`  // host:port of endpoints that the configuration names; a host alone is any port
	Public bool     `json:"public,omitempty"` // only public addresses, whatever else is set
	Hosts  []string `json:"hosts,omitempty"`  // globs of gateway.discoveryHosts; empty: all
}

func newFetchGuard(b Bounds) *fetchGuard {
	return &fetchGuard{Bounds: b, proxies: map[string]bool{}, lookup: net.DefaultResolver.LookupNetIP}
}

// BoundsOf reads the bounds from the configuration of a server.
func BoundsOf(srv config.Server) Bounds {
	var b Bounds
	if u, err := url.Parse(srv.URL); err == nil {
		b.Server, b.Port = strings.ToLower(u.Hostname()), PortOf(u)
	}
	o := SettingsOf(srv)
	b.Allow = o.Discovery.Allow
	named := []string{o.Issuer, o.MetadataURL, o.AuthorizationEndpoint, o.TokenEndpoint, o.DeviceAuthorizationEndpoint}
	if o.IDP != nil {
		named = append(named, o.IDP.Issuer, o.IDP.TokenEndpoint)
	}
	for _, raw := range named {
		if u, err := url.Parse(raw); err == nil && u.Hostname() != "" {
			b.Named = UnionScopes(b.Named, []string{net.JoinHostPort(strings.ToLower(u.Hostname()), PortOf(u))})
		}
	}
	return b
}

// allowed reports whether the configuration lists the host, with or without port.
func (g *fetchGuard) allowed(host, port string) bool {
	return slices.ContainsFunc(g.Allow, func(a string) bool {
		a = strings.ToLower(strings.Trim(a, "[]"))
		return a == host || a == net.JoinHostPort(host, port)
	})
}

// listed reports whether a host is one that the definition of the server names, or in
// the list of the gateway.
func (g *fetchGuard) listed(host, port string) bool {
	at := net.JoinHostPort(host, port)
	if len(g.Hosts) == 0 || host == g.Server || g.allowed(host, port) || slices.Contains(g.Named, host) || slices.Contains(g.Named, at) {
		return true
	}
	return slices.ContainsFunc(g.Hosts, func(p string) bool { return pattern.Match(strings.ToLower(p), host) })
}

// check decides about one resolved address of a host.
func (g *fetchGuard) check(ctx context.Context, host, port string, ip netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	host = strings.ToLower(strings.Trim(host, "[]"))
	if !g.listed(host, port) {
		return fmt.Errorf("%w: %s is not in gateway.discoveryHosts", ErrAddress, Clean(host, 100))
	}
	class := address.Class(ip)
	if class != address.Public && g.Public {
		return fmt.Errorf("%w: %s is at %s, a %s address, and nobody has approved this server of a project file", ErrAddress, Clean(host, 100), ip, class)
	}
	if class == address.Public || g.allowed(host, port) {
		return nil
	}
	at := net.JoinHostPort(host, port)
	if class != address.LinkLocal && (slices.Contains(g.Named, host) || slices.Contains(g.Named, at)) {
		return nil
	}
	if g.portAllowed(ctx, port) && g.serverIsAt(ctx, ip, class) {
		return nil
	}
	return fmt.Errorf("%w: %s is at %s, a %s address; add %q to oauth.discovery.allow if that is right", ErrAddress, Clean(host, 100), ip, class, Clean(at, 100))
}

// portAllowed reports whether a port of the machine that the configured server is on
// may be connected to: that of the server, and those of authorization servers there.
// Whatever else listens there is none of the server's business.
func (g *fetchGuard) portAllowed(ctx context.Context, port string) bool {
	if g.Port == "" || port == g.Port || ctx.Value(probePortKey{}) == port {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Contains(g.Ports, port)
}

// probePortKey is where the port stands at which an authorization server is looked for.
type probePortKey struct{}

// withProbePort is a context in which one more port may be connected to, to see whether there is
// an authorization server.
func withProbePort(ctx context.Context, issuer *url.URL) context.Context {
	return context.WithValue(ctx, probePortKey{}, PortOf(issuer))
}

// vouch lets the ports of addresses be connected to: of an authorization server that
// described itself where it must, or of endpoints in a document that the configuration
// names.
func (w *Client) vouch(p *Provider, addresses ...string) {
	for _, a := range addresses {
		u, err := url.Parse(a)
		if a == "" || err != nil || PortOf(u) == p.Bounds.Port {
			continue
		}
		p.Bounds.Ports = UnionScopes(p.Bounds.Ports, []string{PortOf(u)})
	}
	if w.guard != nil {
		w.guard.mu.Lock()
		defer w.guard.mu.Unlock()
		w.guard.Ports = p.Bounds.Ports
	}
}

// PortOf is the port of an address, also where it is the default of its scheme.
func PortOf(u *url.URL) string {
	return cmp.Or(u.Port(), map[string]string{"https": "443", "http": "80"}[u.Scheme])
}

// serverIsAt reports whether the configured server itself is at ip, so that asking
// there reaches nothing the user has not named. Link-local addresses, which hold
// the metadata services of clouds, count only when they are written out.
func (g *fetchGuard) serverIsAt(ctx context.Context, ip netip.Addr, class string) bool {
	if own, err := netip.ParseAddr(g.Server); err == nil {
		own = own.Unmap()
		return own == ip || own.IsLoopback() && ip.IsLoopback()
	}
	if g.Server == "localhost" {
		return ip.IsLoopback()
	}
	if class == address.LinkLocal || g.Server == "" {
		return false
	}
	addrs, err := g.lookup(ctx, "ip", g.Server)
	if err != nil || len(addrs) == 0 {
		return false
	}
	// A name with a public address beside the private one is not a private name.
	return slices.ContainsFunc(addrs, func(a netip.Addr) bool { return a.Unmap() == ip }) &&
		!slices.ContainsFunc(addrs, func(a netip.Addr) bool { return address.Class(a) == address.Public })
}

// dial connects to addr if the guard lets it.
func (g *fetchGuard) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	d := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	if !g.isProxy(addr) {
		d.ControlContext = func(ctx context.Context, _, to string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(to)
			if err != nil {
				return fmt.Errorf("%w: %s", ErrAddress, to)
			}
			return g.check(ctx, host, port, ap.Addr())
		}
	}
	return d.DialContext(ctx, network, addr)
}

// proxy finds the proxy of the environment. Behind one the resolved address is not
// ours to see, so the name itself must not be a private address.
func (g *fetchGuard) proxy(req *http.Request) (*url.URL, error) {
	p, err := http.ProxyFromEnvironment(req)
	if p == nil || err != nil {
		return p, err
	}
	host, port := req.URL.Hostname(), req.URL.Port()
	if g.Public && address.LocalName(host) {
		return nil, fmt.Errorf("%w: %s is a local name", ErrAddress, Clean(host, 100))
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		if err := g.check(req.Context(), host, port, ip); err != nil {
			return nil, err
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	pport := p.Port()
	if pport == "" {
		pport = map[string]string{"https": "443", "socks5": "1080", "socks5h": "1080"}[p.Scheme]
	}
	if pport == "" {
		pport = "80"
	}
	g.proxies[net.JoinHostPort(p.Hostname(), pport)] = true
	return p, nil
}

func (g *fetchGuard) isProxy(addr string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.proxies[addr]
}

// Client sends requests to authorization servers for the login to one server.
type Client struct {
	rt     http.RoundTripper
	owned  *http.Transport
	guard  *fetchGuard // nil when the program has a network of its own
	bounds Bounds      // as configured, without the ports that discovery adds
	nonces *Nonces
}

// ClientOptions steer a [Client].
type ClientOptions struct {
	// RoundTripper carries the requests in place of the guarded network. Nil: the network.
	RoundTripper http.RoundTripper
	// TLS is used for all requests. Nil: the system's settings.
	TLS *tls.Config
	// Nonces are the DPoP nonces that all clients of a program share.
	Nonces *Nonces
}

// NewClient returns a client that stays within b. The caller closes it.
func NewClient(b Bounds, o ClientOptions) *Client {
	if o.Nonces == nil {
		o.Nonces = &Nonces{}
	}
	if o.RoundTripper != nil {
		return &Client{rt: o.RoundTripper, bounds: b, nonces: o.Nonces}
	}
	g := newFetchGuard(b)
	var tlsConfig *tls.Config
	if o.TLS != nil {
		tlsConfig = o.TLS.Clone()
	}
	t := &http.Transport{
		Proxy: g.proxy, DialContext: g.dial, TLSClientConfig: tlsConfig, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		MaxIdleConnsPerHost: 2, IdleConnTimeout: 10 * time.Second, DisableCompression: true,
	}
	return &Client{rt: t, owned: t, guard: g, bounds: b, nonces: o.Nonces}
}

// Close frees idle connections.
func (w *Client) Close() {
	if w.owned != nil {
		w.owned.CloseIdleConnections()
	}
}
