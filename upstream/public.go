package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"syscall"
	"time"

	"github.com/usher-mcp/usher/internal/address"
)

// ErrNotPublic says that a connection was refused because it would have gone to an
// address that is not public.
var ErrNotPublic = errors.New("the address is not public")

// NewPublicTransport is [NewTransport] for servers that nobody has approved: it
// connects to public addresses only. The check is made on the resolved address when
// the connection is made, so a name that resolves differently the second time gains
// nothing. Behind a proxy the resolved address is not known here; then the name itself
// must not be a local one.
func NewPublicTransport() *Transport {
	t := NewTransport()
	free := t.base.DialContext
	g := &publicDialer{proxies: map[string]bool{}}
	guarded := &net.Dialer{
		Timeout:         10 * time.Second,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 15 * time.Second, Count: 3},
		ControlContext:  refuseLocal,
	}
	t.base.Proxy = g.proxy
	t.base.DialContext = func(ctx context.Context, network, to string) (net.Conn, error) {
		if g.isProxy(to) {
			return free(ctx, network, to)
		}
		return guarded.DialContext(ctx, network, to)
	}
	return t
}

// refuseLocal is asked for every resolved address before it is connected to.
func refuseLocal(_ context.Context, _, to string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(to)
	if err != nil {
		return ErrNotPublic
	}
	if class := address.Class(ap.Addr()); class != address.Public {
		return fmt.Errorf("%w: the name resolves to %s, a %s address", ErrNotPublic, ap.Addr(), class)
	}
	return nil
}

// publicDialer knows the proxies of the environment, which may be anywhere.
type publicDialer struct {
	mu      sync.Mutex // guards proxies
	proxies map[string]bool
}

func (g *publicDialer) proxy(req *http.Request) (*url.URL, error) {
	p, err := http.ProxyFromEnvironment(req)
	if p == nil || err != nil {
		return p, err
	}
	if address.LocalName(req.URL.Hostname()) {
		return nil, ErrNotPublic
	}
	port := p.Port()
	if port == "" {
		port = map[string]string{"https": "443", "socks5": "1080", "socks5h": "1080"}[p.Scheme]
	}
	if port == "" {
		port = "80"
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.proxies[net.JoinHostPort(p.Hostname(), port)] = true
	return p, nil
}

func (g *publicDialer) isProxy(to string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.proxies[to]
}
