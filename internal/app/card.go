package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/template"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/address"
	"github.com/usher-mcp/usher/internal/limit"
)

// ServerCard is the card of a server. Nothing in it is proven: pins are made of what
// the server itself lists, never of a card.
type ServerCard struct {
	config.Card
	Server string
	Source string // where it was read, without credentials
	// Tools are those that the card announces and that policy allows.
	Tools []CardTool
	// Seen says that the server itself has listed its tools before; Others are the
	// names of those that it has and the card does not announce.
	Seen   bool
	Others []string
}

// CardTool is a tool that a card announces.
type CardTool struct {
	config.CardTool
	// State is announced while the server was not seen, then offered or missing.
	State string
}

// The states of a tool on a card.
const (
	CardAnnounced = "announced" // only the card says so
	CardOffered   = "offered"   // the server lists it too
	CardMissing   = "missing"   // the server does not list it
)

// ErrNoCard means that the definition of a server names no card.
var ErrNoCard = errors.New("no server card is named")

// Card reads the card of a server from the path or URL that its definition names. The
// server is not connected to, and the request for the card carries no credentials. A
// definition of a project file must have been approved.
func (h *App) Card(ctx context.Context, server string) (ServerCard, error) {
	k, err := h.key(server)
	if err != nil {
		return ServerCard{}, err
	}
	if err := h.broken(k.Server); err != nil {
		return ServerCard{}, err
	}
	if err := h.gate.Allowed(ctx, h.caller(), k, ""); err != nil {
		return ServerCard{}, err
	}
	srv, ok := h.hosted.Server(k.Server)
	if !ok {
		return ServerCard{}, h.hosted.Unknown(k.Server)
	}
	if srv.Card == "" {
		return ServerCard{}, &host.Error{Server: k.Server, Err: fmt.Errorf("the definition of %s: %w", k.Server, ErrNoCard), Advice: `set "card" of its definition to a path or URL`}
	}
	if err := h.approved(ctx, srv); err != nil {
		return ServerCard{}, &host.Error{Server: k.Server, Err: fmt.Errorf("%w: %w", host.ErrHeldBack, err), Advice: "usher approve " + k.Server}
	}
	card, err := h.readCard(ctx, srv)
	if err != nil {
		return ServerCard{}, &host.Error{Op: "read the card of", Server: k.Server, Err: err}
	}
	return h.compareCard(ctx, k, ServerCard{Card: card, Server: k.Server, Source: template.MaskURI(srv.Card)})
}

func (h *App) readCard(ctx context.Context, srv config.Server) (config.Card, error) {
	ctx, stop := context.WithTimeout(ctx, limit.CardTime)
	defer stop()
	at, err := srv.ResolveCard(ctx, h.placeholders)
	if err != nil {
		return config.Card{}, err
	}
	read := cardFile
	if strings.Contains(at, "://") {
		read = func(at string) ([]byte, error) { return h.fetchCard(ctx, srv, at) }
	}
	text, err := read(at)
	if err != nil {
		return config.Card{}, err
	}
	return config.ParseCard(text)
}

// cardFile reads a card from a regular file; anything else could block or never end.
func cardFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", config.Visible(path))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readBounded(f)
}

// readBounded reads one byte more than a card may have, so that the parser refuses it.
func readBounded(r io.Reader) ([]byte, error) {
	return io.ReadAll(io.LimitReader(r, limit.CardBytes+1))
}

// fetchCard gets a card from a URL. Redirects are not followed: where they lead is not
// what the definition says. Errors do not quote the URL, which may hold a credential.
func (h *App) fetchCard(ctx context.Context, srv config.Server, at string) ([]byte, error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, errors.New("its address is not a URL")
	}
	rt, err := h.cardTransport(ctx, srv, u)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, http.NoBody)
	if err != nil {
		return nil, errors.New("its address is not a URL")
	}
	req.Header.Set("Accept", "application/mcp-server-card+json, application/json")
	resp, err := rt.RoundTrip(req)
	if err != nil {
		var inner *url.Error
		if errors.As(err, &inner) {
			err = inner.Err
		}
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered with status %d", config.Visible(u.Host), resp.StatusCode)
	}
	return readBounded(resp.Body)
}

// cardTransport carries the request for a card. A name must be at a public address,
// unless the server itself is there; an address of this machine or network must be
// written out, and never be one of those where clouds keep credentials.
func (h *App) cardTransport(ctx context.Context, srv config.Server, u *url.URL) (http.RoundTripper, error) {
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && address.Class(ip) == address.LinkLocal {
		return nil, fmt.Errorf("%s is a %s address", ip, address.LinkLocal)
	}
	switch {
	case h.public == nil: // the program has a network of its own
		return h.plain, nil
	case h.publicOnly(ctx, srv), !address.LocalName(u.Hostname()) && !sameHost(srv.URL, u):
		return h.public, nil
	}
	return h.plain, nil
}

// sameHost reports whether the URL of a server, as it is written, has the host and port
// of u.
func sameHost(raw string, u *url.URL) bool {
	own, err := url.Parse(raw)
	return err == nil && own.Scheme == u.Scheme && strings.EqualFold(own.Hostname(), u.Hostname()) && portOf(own) == portOf(u)
}

func portOf(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
}

// compareCard sets what the card announces beside what the server has listed itself, if
// it was seen. Tools that policy denies are left out.
func (h *App) compareCard(ctx context.Context, k host.Key, c ServerCard) (ServerCard, error) {
	known, seen, err := h.gate.Known(ctx, h.caller(), k)
	if err != nil {
		return ServerCard{}, err
	}
	c.Seen = seen
	listed := map[string]bool{}
	for _, t := range known.Tools {
		listed[t.Name] = true
	}
	for _, t := range c.Card.Tools {
		state := CardAnnounced
		switch {
		case listed[t.Name]:
			state = CardOffered
		case h.gate.Allowed(ctx, h.caller(), k, t.Name) != nil:
			continue
		case seen:
			state = CardMissing
		}
		delete(listed, t.Name)
		c.Tools = append(c.Tools, CardTool{t, state})
	}
	for name := range listed {
		c.Others = append(c.Others, name)
	}
	slices.Sort(c.Others)
	return c, nil
}
