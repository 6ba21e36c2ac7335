// Package servercard reads the server card that a definition names, without connecting
// to the server:
//
//	card, err := servercard.Read(ctx, key, srv, &servercard.Options{Gate: gate, …})
//
// Nothing in a card is proven: pins are made of what the server itself lists, never of a
// card. The request for a card carries no credentials, follows no redirect and reaches
// private addresses only where the definition allows it.
package servercard

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
	"github.com/usher-mcp/usher/policy"
)

// Options steer [Read].
type Options struct {
	// Gate says which tools the caller may see.
	Gate   *policy.Gate
	Caller policy.Caller
	// Lookup fills in the placeholders of the address.
	Lookup config.Lookup
	// Transport carries requests without credentials; Public connects to public
	// addresses only. Public is nil when the program brings its own network.
	Transport, Public http.RoundTripper
	// PublicOnly reports whether the server must not reach private addresses.
	PublicOnly func(ctx context.Context, srv config.Server) bool
}

// Card is the card of a server, beside what the server itself has listed.
type Card struct {
	config.Card
	Server string
	Source string // where it was read, without credentials
	// Tools are those that the card announces and that policy allows.
	Tools []Tool
	// Seen says that the server itself has listed its tools before; Others are the
	// names of those that it has and the card does not announce.
	Seen   bool
	Others []string
}

// Tool is a tool that a card announces.
type Tool struct {
	config.CardTool
	// State is Announced while the server was not seen, then Offered or Missing.
	State string
}

// The states of a tool on a card.
const (
	Announced = "announced" // only the card says so
	Offered   = "offered"   // the server lists it too
	Missing   = "missing"   // the server does not list it
)

// ErrNone means that the definition of a server names no card.
var ErrNone = errors.New("no server card is named")

// Read reads the card of a server from the path or URL that its definition names. The
// caller has checked that policy allows the server and that a person has approved its
// definition.
func Read(ctx context.Context, k host.Key, srv config.Server, opt *Options) (Card, error) {
	if srv.Card == "" {
		return Card{}, &host.Error{Server: k.Server, Err: fmt.Errorf("the definition of %s: %w", k.Server, ErrNone), Advice: `set "card" of its definition to a path or URL`}
	}
	r := &reader{*opt}
	card, err := r.read(ctx, srv)
	if err != nil {
		return Card{}, &host.Error{Op: "read the card of", Server: k.Server, Err: err}
	}
	return r.compare(ctx, k, Card{Card: card, Server: k.Server, Source: template.MaskURI(srv.Card)})
}

type reader struct{ Options }

func (r *reader) read(ctx context.Context, srv config.Server) (config.Card, error) {
	ctx, stop := context.WithTimeout(ctx, limit.CardTime)
	defer stop()
	at, err := srv.ResolveCard(ctx, r.Lookup)
	if err != nil {
		return config.Card{}, err
	}
	read := readFile
	if strings.Contains(at, "://") {
		read = func(at string) ([]byte, error) { return r.fetch(ctx, srv, at) }
	}
	text, err := read(at)
	if err != nil {
		return config.Card{}, err
	}
	return config.ParseCard(text)
}

// readFile reads a card from a regular file; anything else could block or never end.
func readFile(path string) ([]byte, error) {
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

// fetch gets a card from a URL. Redirects are not followed: where they lead is not
// what the definition says. Errors do not quote the URL, which may hold a credential.
func (r *reader) fetch(ctx context.Context, srv config.Server, at string) ([]byte, error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, errors.New("its address is not a URL")
	}
	rt, err := r.transport(ctx, srv, u)
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

// transport carries the request for a card. A name must be at a public address,
// unless the server itself is there; an address of this machine or network must be
// written out, and never be one of those where clouds keep credentials.
func (r *reader) transport(ctx context.Context, srv config.Server, u *url.URL) (http.RoundTripper, error) {
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && address.Class(ip) == address.LinkLocal {
		return nil, fmt.Errorf("%s is a %s address", ip, address.LinkLocal)
	}
	switch {
	case r.Public == nil: // the program brings its own network
		return r.Transport, nil
	case r.PublicOnly(ctx, srv), !address.LocalName(u.Hostname()) && !sameHost(srv.URL, u):
		return r.Public, nil
	}
	return r.Transport, nil
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

// compare sets what the card announces beside what the server has listed itself, if
// it was seen. Tools that policy denies are left out.
func (r *reader) compare(ctx context.Context, k host.Key, c Card) (Card, error) {
	known, seen, err := r.Gate.Known(ctx, r.Caller, k)
	if err != nil {
		return Card{}, err
	}
	c.Seen = seen
	listed := map[string]bool{}
	for _, t := range known.Tools {
		listed[t.Name] = true
	}
	for _, t := range c.Card.Tools {
		state := Announced
		switch {
		case listed[t.Name]:
			state = Offered
		case r.Gate.Allowed(ctx, r.Caller, k, t.Name) != nil:
			continue
		case seen:
			state = Missing
		}
		delete(listed, t.Name)
		c.Tools = append(c.Tools, Tool{t, state})
	}
	for name := range listed {
		c.Others = append(c.Others, name)
	}
	slices.Sort(c.Others)
	return c, nil
}
