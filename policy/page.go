package policy

import (
	"bytes"
	"context"
	"sync"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/internal/lookalike"
	"github.com/usher-mcp/usher/mcp"
)

// toolsPage leaves out of a page of a server's tools what does not exist for the
// caller. Where nothing has to be left out the page is the server's, to the byte.
func (g *Gate) toolsPage(ctx context.Context, c *Caller, k Key, raw []byte) ([]byte, error) {
	sc := g.account(k)
	to := g.line(sc, k)
	cat, known := to.Cached()
	listing, err := g.listing(ctx, c, sc, k, cat)
	if err != nil {
		return nil, err
	}
	id := pageKey{sc.id, c.Scope.Key()}
	if out, ok := g.pages.get(id, raw, listing.Tools); ok && known {
		return out, nil
	}
	if err := oneList(raw); err != nil {
		return nil, err
	}
	if !known || !covers(cat.Tools, raw) {
		if cat, err = to.Tools(ctx); err == nil {
			listing, err = g.listing(ctx, c, sc, k, cat)
		}
		if err != nil {
			return nil, err
		}
	}
	out := filterPage(raw, listing, c.Scope.Narrow())
	g.pages.put(id, raw, listing.Tools, out)
	return out, nil
}

// listKeys are the members of a page that hold tools.
var listKeys = []string{"tools"}

// oneList refuses a page in which clients may find tools that nobody compares with
// their pins: in a second list, in one under a name that resembles "tools", or in
// something that is not a list.
func oneList(page []byte) error {
	seen := false
	m := jsonx.Object(page)
	for m.Next() {
		own := string(m.Key) == listKeys[0]
		switch kind := jsonx.TypeOf(m.Value); {
		case own && seen, !own && lookalike.Of(m.Key, listKeys) != "", own && kind != "array" && kind != "null":
			return mcp.Errorf(mcp.CodeInternal, "the server's list of tools can be read in more than one way")
		}
		seen = seen || own
	}
	return m.Err()
}

// covers reports whether a list has every tool of a page as it stands there.
func covers(list [][]byte, page []byte) bool {
	known := make(map[string]bool, len(list))
	for _, def := range list {
		known[string(def)] = true
	}
	tools, _ := jsonx.Get(page, "tools")
	for e := jsonx.Array(tools); e.Next(); {
		if !known[string(e.Value)] {
			return false
		}
	}
	return true
}

// filterPage leaves out what is not listed and renames what config renames. A tool that
// stands on the page in another form than the gate has compared with its pin is
// shown in the form that was, and each tool once: a short page could otherwise repeat
// a large definition without end.
func filterPage(page []byte, listing Listing, private bool) []byte {
	shown := make(map[string]Tool, len(listing.Tools))
	for _, t := range listing.Tools {
		if !t.Blocked {
			shown[t.Own] = t
		}
	}
	tools, ok := jsonx.Get(page, "tools")
	if !ok {
		return page
	}
	var out [][]byte
	same := true
	for e := jsonx.Array(tools); e.Next(); {
		name := jsonx.GetText(e.Value, "name")
		t, ok := shown[name]
		delete(shown, name)
		switch {
		case !ok:
			same = false
		case t.Name != t.Own:
			same = false
			out = append(out, jsonx.Set(t.Definition, "name", jsonx.Quote(t.Name)))
		default:
			same = same && bytes.Equal(e.Value, t.Definition)
			out = append(out, t.Definition)
		}
	}
	if same {
		return page
	}
	edits := []jsonx.Edit{{Key: "tools", Value: append(append([]byte{'['}, bytes.Join(out, []byte{','})...), ']')}}
	if _, ok := jsonx.Get(page, "cacheScope"); ok && private {
		edits = append(edits, jsonx.Edit{Key: "cacheScope", Value: []byte(`"private"`)})
	}
	return jsonx.Apply(page, edits...)
}

// pages remembers how the last page of a server was filtered: a page from the cache
// is the same bytes again.
type pages struct {
	mu  sync.Mutex // guards all
	all map[pageKey]page
}

// pageKey says whose page it is: of an account, in a scope.
type pageKey struct {
	account accountID
	scope   string
}

type page struct {
	raw   []byte
	tools []Tool
	out   []byte
}

func (p *pages) get(k pageKey, raw []byte, tools []Tool) ([]byte, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.all[k]
	if !ok || !sameSlice(last.raw, raw) || !sameSlice(last.tools, tools) {
		return nil, false
	}
	return last.out, true
}

func (p *pages) put(k pageKey, raw []byte, tools []Tool, out []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil || len(p.all) >= limit.ToolPages {
		p.all = map[pageKey]page{}
	}
	p.all[k] = page{raw, tools, out}
}

func sameSlice[T any](a, b []T) bool {
	return len(a) == len(b) && (a == nil) == (b == nil) && (len(a) == 0 || &a[0] == &b[0])
}
