package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/gateway"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/process"
	"github.com/usher-mcp/usher/surface"
	"github.com/usher-mcp/usher/upstream"
	"github.com/usher-mcp/usher/vault"
)

// stack is a gateway with everything behind it, in memory.
type stack struct {
	hosted  *host.Host
	gate    *policy.Gate
	surface *surface.Surface
	gateway *gateway.Gateway
	events  *event.Bus[event.Event]
	servers []surface.Server
}

func newStack(log *slog.Logger, servers ...config.Server) (*stack, error) {
	s := &stack{events: new(event.Bus[event.Event])}
	s.hosted = host.New(&host.Options{
		Executable: process.Self(), Log: log, Events: s.events,
		Connection: func(k host.Key) upstream.Options {
			return upstream.Options{
				Capabilities: s.surface.LaneCapabilities(k),
				OnRequest: func(ctx context.Context, method string, params []byte) ([]byte, *wire.Error) {
					return s.surface.LaneAsk(ctx, k, method, params)
				},
			}
		},
		OnNotification: func(k host.Key, m wire.Message) {
			s.gate.Notified(k, m)
			s.surface.Notified(k, m)
		},
	})
	s.gate = policy.NewGate(s.hosted, vault.NewMemory(), &policy.Options{Log: log})
	s.surface = surface.New(s.gate, &surface.Options{Hosted: s, Mode: "direct", Events: s.events, Log: log})
	s.gateway = gateway.New(s.surface, &gateway.Options{Log: log})
	for _, srv := range servers {
		srv.KeepAlive = config.DefaultKeepAlive
		srv = srv.WithDefaults()
		if err := s.hosted.Spawn(context.Background(), srv, &host.SpawnOptions{Lazy: true}); err != nil {
			s.close()
			return nil, err
		}
		s.servers = append(s.servers, surface.Server{Name: srv.Name, Transport: string(srv.Transport), Eager: true})
	}
	return s, nil
}

func (s *stack) close() {
	s.gateway.Close()
	s.surface.Close()
	s.gate.Close(context.Background())
	s.hosted.Close()
}

// What a surface has to know of servers.

func (s *stack) Servers(string) []surface.Server { return s.servers }

func (s *stack) Status(context.Context, string, string) []surface.Status { return nil }

func (s *stack) List(ctx context.Context, k policy.Key, method string) (policy.Catalog, error) {
	return s.hosted.List(ctx, k, method)
}

func (s *stack) Listen(ctx context.Context, k policy.Key, want surface.Subscription, on func(wire.Message)) error {
	sub := upstream.Subscription{Tools: want.Tools, Prompts: want.Prompts, Resources: want.Resources, URIs: want.URIs}
	return s.hosted.Listen(ctx, k, sub, on)
}

func (s *stack) Notify(ctx context.Context, k policy.Key, method string, params []byte) error {
	return s.hosted.Notify(ctx, k, method, params)
}

func (s *stack) Release(k policy.Key) { s.hosted.Release(k) }

func (s *stack) Explain(err error) surface.Problem {
	p := surface.Problem{Text: err.Error(), Kind: surface.KindUnavailable}
	var known *host.Error
	if errors.As(err, &known) {
		p.Server, p.Next, p.RetryAfter = known.Server, known.Hint, known.RetryAfter
	}
	for kind, sentinel := range map[surface.Kind]error{
		surface.KindLogin: host.ErrNeedsLogin, surface.KindUnknownServer: host.ErrUnknownServer, surface.KindUnknownTool: host.ErrUnknownTool,
		surface.KindUnknown: host.ErrOutcomeUnknown, surface.KindOff: host.ErrDisabled, surface.KindCancelled: context.Canceled,
	} {
		if errors.Is(err, sentinel) {
			p.Kind = kind
		}
	}
	return p
}
