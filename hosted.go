package usher

import (
	"context"
	"errors"
	"time"

	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/surface"
	"github.com/usher-mcp/usher/upstream"
)

// hosted tells a surface what it has to know of the servers.
type hosted struct {
	*host.Host
	of *Host
}

// Servers are the configured servers, once for each account that is logged in.
func (h *hosted) Servers(string) []surface.Server {
	var out []surface.Server
	for _, name := range h.Names() {
		srv, ok := h.Server(name)
		if !ok {
			continue
		}
		s := surface.Server{
			Name: name, Description: srv.Title, Transport: string(srv.Transport), Eager: !srv.IsLazy(),
			Off: srv.Disabled || srv.Problem != nil,
		}
		out = append(out, s)
		for _, label := range h.of.labels(name) {
			s.Account = label
			out = append(out, s)
		}
	}
	return out
}

// Status is the state of all servers of a principal, or of the named one.
func (h *hosted) Status(_ context.Context, principal, name string) []surface.Status {
	var out []surface.Status
	for _, s := range h.of.Status().Servers {
		label := accountName(s.Name, s.Account)
		mine := s.Principal == "" || s.Principal == principal
		if s.Lane != "" || !mine || name != "" && name != label {
			continue
		}
		out = append(out, surface.Status{
			Server: label, State: string(s.State), Transport: s.Transport, Version: s.ProtocolVersion, Tools: s.Tools,
			Stale: s.Stale, Circuit: s.Circuit, Ejected: s.Ejected, NeedsLogin: s.Auth.NeedsLogin(), Reason: s.Auth.Reason,
			Next: s.Auth.Command, LastError: s.LastError,
		})
	}
	return out
}

func accountName(server, label string) string {
	if label == "" {
		return server
	}
	return server + "@" + label
}

// Listen subscribes at a server until ctx ends.
func (h *hosted) Listen(ctx context.Context, k host.Key, want surface.Subscription, on func(wire.Message)) error {
	return h.Host.Listen(ctx, k, upstream.Subscription(want), on)
}

// kinds says what errors of the host mean to an agent, the first that fits.
func kinds() []struct {
	is   error
	kind surface.Kind
} {
	return []struct {
		is   error
		kind surface.Kind
	}{
		{host.ErrNeedsLogin, surface.KindLogin},
		{host.ErrUnknownServer, surface.KindUnknownServer},
		{host.ErrUnknownTool, surface.KindUnknownTool},
		{host.ErrOutcomeUnknown, surface.KindUnknown},
		{host.ErrHeldBack, surface.KindOff},
		{host.ErrDisabled, surface.KindOff},
		{host.ErrCircuitOpen, surface.KindUnavailable},
		{host.ErrEjected, surface.KindUnavailable},
		{host.ErrBusy, surface.KindUnavailable},
		{upstream.ErrTransport, surface.KindUnavailable},
		{context.DeadlineExceeded, surface.KindUnavailable},
	}
}

// Explain says what an error of the gate or the host means.
func (h *hosted) Explain(err error) surface.Problem {
	p := surface.Problem{Text: err.Error()}
	var e *host.Error
	if errors.As(err, &e) {
		p.Server, p.Next, p.RetryAfter = e.Server, e.Hint, e.RetryAfter
	}
	for _, k := range kinds() {
		if errors.Is(err, k.is) {
			p.Kind = k.kind
			break
		}
	}
	return p
}

// labelsAge is how long the list of named accounts is believed.
const labelsAge = 5 * time.Second

// labels are the named accounts at a server that are logged in.
func (h *Host) labels(server string) []string {
	h.accounts.mu.Lock()
	defer h.accounts.mu.Unlock()
	if time.Since(h.accounts.at) > labelsAge && !h.accounts.reading {
		h.accounts.reading = true
		h.background.Go(h.readLabels)
	}
	return h.accounts.byServer[server]
}

// readLabels reads the named accounts again, off the path of whoever asked.
func (h *Host) readLabels() {
	ctx, stop := context.WithTimeout(h.life, statusTimeout)
	defer stop()
	all, err := h.engine.Accounts(ctx, h.principal)
	byServer := map[string][]string{}
	for _, a := range all {
		if a.Account.Label != "" {
			byServer[a.Account.Server] = append(byServer[a.Account.Server], a.Account.Label)
		}
	}
	h.accounts.mu.Lock()
	defer h.accounts.mu.Unlock()
	h.accounts.reading = false
	h.accounts.at = time.Now()
	if err == nil || len(all) > 0 {
		h.accounts.byServer = byServer
	}
}
