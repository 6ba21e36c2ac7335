package surface

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/surface/internal/naming"
)

// source is one server, or account at it, and what is known of it.
type source struct {
	Server
	label   string
	key     policy.Key // of the shared connection
	listing policy.Listing
	known   bool  // listing is filled
	err     error // why nothing of it may be seen
}

// sources are the servers that exist for an agent, sorted, with what is known of
// each. No server is asked for anything.
func (s *Surface) sources(ctx context.Context, a Agent) []source {
	servers := s.gate.Servers(ctx, a.who)
	out := make([]source, 0, len(servers))
	for _, srv := range servers {
		src := source{Server: srv, label: naming.Label(srv.Name, srv.Account), key: policy.Key{Principal: a.Principal, Server: srv.Name, Account: srv.Account}}
		if !srv.Off {
			src.listing, src.known, src.err = s.gate.Known(ctx, a.who, src.key)
		}
		out = append(out, src)
	}
	return out
}

// items are the definitions of a list, nil when it is not known.
func (src *source) items(method string) [][]byte {
	switch method {
	case mcp.MethodPromptsList:
		return src.listing.Prompts
	case mcp.MethodResourcesList:
		return src.listing.Resources
	case mcp.MethodTemplatesList:
		return src.listing.Templates
	}
	return src.listing.Catalog.Tools
}

// lacks reports whether a list of a server would have to be asked for.
func (src *source) lacks(method string) bool {
	switch {
	case src.Off || src.err != nil:
		return false
	case method != mcp.MethodToolsList && !src.Whole:
		return false
	case !src.known:
		return true
	case method == mcp.MethodToolsList || src.items(method) != nil:
		return false
	}
	return src.offers(method)
}

// offers reports whether the server declared what a list is of. One that declared
// nothing may have it.
func (src *source) offers(method string) bool {
	if src.listing.Capabilities == nil {
		return true
	}
	what, _, _ := strings.Cut(method, "/")
	_, ok := jsonx.Get(src.listing.Capabilities, what)
	return ok
}

// doubtful reports whether the lists are worth reading again in the background.
func (src *source) doubtful(started time.Time) bool {
	if !src.known || src.Off {
		return false
	}
	return src.listing.Stale && (src.Eager || src.Transport != "stdio") || src.Eager && src.listing.At.Before(started)
}

// sameAs reports whether nothing has changed, without looking into definitions.
func (src *source) sameAs(o *source) bool {
	a, b := &src.listing, &o.listing
	return src.Server == o.Server && src.known == o.known && (src.err == nil) == (o.err == nil) &&
		a.At.Equal(b.At) && a.TTL == b.TTL && a.Public == b.Public && a.Version == b.Version &&
		sameTools(a.Tools, b.Tools) &&
		sameSlice(a.Prompts, b.Prompts) && sameSlice(a.Resources, b.Resources) && sameSlice(a.Templates, b.Templates)
}

func sameSlice[T any](a, b []T) bool {
	return len(a) == len(b) && (a == nil) == (b == nil) && (len(a) == 0 || &a[0] == &b[0])
}

// sameTools also knows lists again that a program's own policy copied.
func sameTools(a, b []policy.Tool) bool {
	if sameSlice(a, b) {
		return true
	}
	return slices.EqualFunc(a, b, func(x, y policy.Tool) bool {
		return x.Name == y.Name && x.Blocked == y.Blocked && sameSlice(x.Definition, y.Definition)
	})
}
