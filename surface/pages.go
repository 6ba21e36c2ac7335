package surface

import (
	"bytes"
	"context"
	"sync"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/policy"
)

// tools passes a page of a server's tools on. Where nothing has to be left out the
// page is the server's, to the byte.
func (v *single) tools(ctx context.Context, a Agent, r Request) ([]byte, error) {
	raw, k, err := v.s.forwardOn(ctx, a, v.key(a), "", r)
	if err != nil {
		return nil, err
	}
	listing, known, err := v.s.gate.Known(ctx, k)
	if err != nil {
		return nil, err
	}
	sel := selection{tools: a.Tools}
	if out, ok := v.s.pages.get(v.key(a), raw, listing.Tools); ok && sel.empty() {
		return out, nil
	}
	if !known || !covers(listing.Catalog.Tools, raw) {
		if listing, err = v.s.gate.Tools(ctx, k); err != nil {
			return nil, err
		}
	}
	out := v.filter(raw, listing, sel)
	if sel.empty() {
		v.s.pages.put(v.key(a), raw, listing.Tools, out)
	}
	return out, nil
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

// filter leaves out what may not be seen and renames what config renames. A tool that
// stands on the page in another form than the gate has compared with its pin is
// shown in the form that was.
func (v *single) filter(page []byte, listing policy.Listing, sel selection) []byte {
	shown := make(map[string]policy.Tool, len(listing.Tools))
	for _, t := range listing.Tools {
		if !t.Blocked && sel.tool(v.server, v.account, t.Own) {
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
		t, ok := shown[jsonx.GetText(e.Value, "name")]
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
	if _, ok := jsonx.Get(page, "cacheScope"); ok && sel.scoped() {
		edits = append(edits, jsonx.Edit{Key: "cacheScope", Value: []byte(`"private"`)})
	}
	return jsonx.Apply(page, edits...)
}

// pages remembers how the last page of a server was filtered: a page from the cache
// is the same bytes again.
type pages struct {
	mu  sync.Mutex // guards all
	all map[policy.Key]page
}

type page struct {
	raw   []byte
	tools []policy.Tool
	out   []byte
}

func (p *pages) get(k policy.Key, raw []byte, tools []policy.Tool) ([]byte, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.all[k]
	if !ok || !sameSlice(last.raw, raw) || !sameSlice(last.tools, tools) {
		return nil, false
	}
	return last.out, true
}

func (p *pages) put(k policy.Key, raw []byte, tools []policy.Tool, out []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil || len(p.all) >= maxSnapshots {
		p.all = map[policy.Key]page{}
	}
	p.all[k] = page{raw, tools, out}
}
