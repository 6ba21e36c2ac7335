package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/gateway"
	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/internal/app"
)

// newGateway makes the gateway of a listening usher: one of several when its store is
// one that others share.
func newGateway(ctx context.Context, f *cmdutil.Factory, h *app.App, addr net.Addr, who authn.Authenticator) (*gateway.Gateway, error) {
	peer := h.Config().Usher.Gateway.PeerURL
	if !h.SharedStore() && peer == "" {
		return h.Frontend().Gateway(who), nil
	}
	if peer == "" {
		own, err := ownAddress(addr)
		if err != nil {
			return nil, cmdutil.WithHint(err, "say it with --peer-url http://ADDRESS:PORT")
		}
		peer = "http://" + own
	}
	g, err := h.Frontend().Replica(ctx, who, peer)
	if err == nil {
		f.Note("one of several: others reach this one at %s", peer)
	}
	return g, err
}

// ownAddress is where other machines reach what listens on addr: that very address,
// or, of one that listens everywhere, the first of this machine's own.
func ownAddress(addr net.Addr) (string, error) {
	if isSocket(addr) {
		return "", errors.New("other replicas cannot reach this one on a Unix socket")
	}
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return addr.String(), nil
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("find the address at which other replicas reach this one: %w", err)
	}
	for _, a := range all {
		prefix, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue
		}
		if ip := prefix.Addr(); ip.IsGlobalUnicast() {
			return net.JoinHostPort(ip.String(), strconv.Itoa(tcp.Port)), nil
		}
	}
	return "", fmt.Errorf("this machine has no address that other replicas can reach")
}
