package surface

import (
	"bytes"
	"slices"
	"strings"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/surface/internal/naming"
)

// addressed is one resource or template of a server.
type addressed struct {
	target
	shown string
}

func (snap *snapshot) addResources() {
	all := snap.gather(mcp.MethodResourcesList, "uri")
	for _, a := range all {
		snap.uris[a.name] = append(snap.uris[a.name], a.target)
	}
	snap.resources = newList("resources", nil, asEntries(all, "uri"), freshness{})
}

// addTemplates lists all templates; addresses are compared with as many of a server as
// the limit says.
func (snap *snapshot) addTemplates() {
	all := snap.gather(mcp.MethodTemplatesList, "uriTemplate")
	count := map[*source]int{}
	for _, a := range all {
		if count[a.src]++; count[a.src] > limit.Templates {
			continue
		}
		snap.patterns = append(snap.patterns, pattern{naming.ParseTemplate(a.name), a.target})
	}
	snap.templates = newList("resourceTemplates", nil, asEntries(all, "uriTemplate"), freshness{})
}

// gather collects what servers list under addresses. An address keeps its form
// where one server alone has it. Where several do, each gets the one that names
// its server: no server may take over the address of another.
func (snap *snapshot) gather(method, key string) []addressed {
	var all []addressed
	owners := map[string]int{}
	for src := range snap.whole() {
		var own []entry
		for _, def := range src.items(method) {
			if uri := jsonx.GetText(def, key); uri != "" {
				own = append(own, entry{target: target{src, uri, def}})
			}
		}
		for _, e := range named(own) {
			owners[e.name]++
			all = append(all, addressed{target: e.target, shown: e.name})
		}
	}
	for i := range all {
		if a := &all[i]; owners[a.name] > 1 || strings.HasPrefix(a.name, naming.UriPrefix) {
			a.shown = naming.WithServer(a.src.label, a.name)
		}
	}
	return all
}

func asEntries(all []addressed, key string) []entry {
	out := make([]entry, len(all))
	for i, a := range all {
		out[i] = entry{shown: a.shown, def: a.def, target: a.target}
		if a.shown != a.name {
			out[i].def = jsonx.Set(a.def, key, jsonx.Quote(a.shown))
		}
	}
	return out
}

// resolve finds the server that an address leads to. Addresses that nobody lists go
// to the server that has a template for them, the most specific one, and then to the only
// server with resources at all.
func (snap *snapshot) resolve(a Agent, uri string) (target, *mcp.Error) {
	if l, rest, ok := naming.SplitServer(uri); ok && snap.by[l] != nil && snap.by[l].Whole {
		return target{src: snap.by[l], name: rest}, nil
	}
	if owners := snap.uris[uri]; len(owners) > 0 {
		return one(owners, uri)
	}
	if owners := snap.matching(uri); len(owners) > 0 {
		return one(owners, uri)
	}
	var owners []target
	for i := range snap.sources {
		src := &snap.sources[i]
		if src.Whole && src.known && src.offers(mcp.MethodResourcesList) {
			owners = append(owners, target{src: src, name: uri})
		}
	}
	if len(owners) == 1 {
		return owners[0], nil
	}
	return target{}, notFound(a, uri)
}

func one(owners []target, uri string) (target, *mcp.Error) {
	if len(owners) == 1 {
		return target{src: owners[0].src, name: uri}, nil
	}
	var ways []string
	for _, o := range owners {
		ways = append(ways, naming.WithServer(o.src.label, uri))
	}
	return target{}, mcp.Errorf(mcp.CodeInvalidParams, "several servers have %s; name the one that is meant: %s", uri, strings.Join(ways, " or "))
}

// matching are the servers, each once, whose templates fit best.
func (snap *snapshot) matching(uri string) []target {
	var out []target
	best := -1
	for _, p := range snap.patterns {
		switch {
		case p.Literal < best || !p.Matches(uri):
			continue
		case p.Literal > best:
			best, out = p.Literal, nil
		}
		if !slices.ContainsFunc(out, func(t target) bool { return t.src == p.src }) {
			out = append(out, p.target)
		}
	}
	return out
}

// notFound is the error that each era has for it.
func notFound(a Agent, uri string) *mcp.Error {
	code := int64(mcp.CodeResourceNotFound)
	if mcp.Stateless(a.Version) {
		code = mcp.CodeInvalidParams
	}
	e := mcp.Errorf(code, "resource not found: no server lists %s or has a template for it; an address of the form %sSERVER/URI names the server", uri, naming.UriPrefix)
	e.Data = jsonx.Set(nil, "uri", jsonx.Quote(uri))
	return e
}

// shownURI is the address under which a resource of a server is known to agents.
func (snap *snapshot) shownURI(src *source, uri string) string {
	if owners := snap.uris[uri]; len(owners) > 1 || strings.HasPrefix(uri, naming.UriPrefix) {
		return naming.WithServer(src.label, uri)
	}
	return uri
}

// renameContents gives the contents of a resource the address it was asked for by.
func renameContents(result []byte, own, shown string) []byte {
	contents, ok := jsonx.Get(result, "contents")
	if own == shown || !ok {
		return result
	}
	var out [][]byte
	for e := jsonx.Array(contents); e.Next(); {
		v := e.Value
		if jsonx.GetText(v, "uri") == own {
			v = jsonx.Set(v, "uri", jsonx.Quote(shown))
		}
		out = append(out, v)
	}
	return jsonx.Set(result, "contents", append(append([]byte{'['}, bytes.Join(out, []byte{','})...), ']'))
}
