package gateway

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"time"

	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/surface"
)

// headerTables know which arguments of which tools travel in headers, per endpoint and
// kind of caller.
// They are learned from the lists that pass by, and from one asked for when a tool
// is called before any did.
type headerTables struct {
	mu  sync.RWMutex            // guards all
	all map[string]*headerTable // by tableKey
}

type headerTable struct {
	mu     sync.RWMutex // guards what follows
	params map[string][]wire.HeaderParam
	last   *byte     // where the list that was read last begins, to know it again
	asked  time.Time // when a list was asked for
	whole  bool      // the end of a list has been read
}

// askAgain is how long not to ask for a list again that could not be had.
const askAgain = 10 * time.Second

// maxTables bounds the tables: an agent can name accounts that there are not.
const maxTables = 10_000

func (t *headerTables) of(key string) *headerTable {
	t.mu.RLock()
	table := t.all[key]
	t.mu.RUnlock()
	if table != nil {
		return table
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if table = t.all[key]; table == nil {
		if t.all == nil || len(t.all) >= maxTables {
			t.all = map[string]*headerTable{} // they are learned again
		}
		table = &headerTable{}
		t.all[strings.Clone(key)] = table // it is part of a request
	}
	return table
}

// tableKey names the table of an endpoint for an agent. Each principal has a table of
// its own, and each token with a scope: an error about a header must not tell of tools
// that the agent does not see.
func tableKey(e *endpoint, a *surface.Agent) string {
	switch {
	case len(a.Servers) == 0 && len(a.Tools) == 0:
		if a.Principal == authn.LocalPrincipal {
			return e.key
		}
		return e.key + "\x00principal " + a.Principal
	case a.Credential != "":
		return e.key + "\x00credential " + a.Credential
	}
	return e.key + "\x00owner " + owner(*a)
}

// learn reads a result of tools/list. Agents may see different parts of a list, so
// what it does not name stays as it is.
func (t *headerTable) learn(result []byte) {
	if len(result) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == &result[0] {
		return
	}
	t.last = &result[0]
	if _, more := jsonx.Get(result, "nextCursor"); !more {
		t.whole = true
	}
	if len(t.params) == 0 && !bytes.Contains(result, []byte("x-mcp-header")) {
		return
	}
	tools, _ := jsonx.Get(result, "tools")
	for e := jsonx.Array(tools); e.Next(); {
		name := jsonx.GetText(e.Value, "name")
		schema, _ := jsonx.Get(e.Value, "inputSchema")
		params, err := wire.HeaderParams(schema)
		if err != nil || len(params) == 0 {
			delete(t.params, name) // with broken annotations nobody can call it rightly
			continue
		}
		if t.params == nil {
			t.params = map[string][]wire.HeaderParam{}
		}
		t.params[name] = params
	}
}

// find returns the annotated arguments of a tool; ask says that no list is known
// and that this caller should get one.
func (t *headerTable) find(tool string) (params []wire.HeaderParam, ask bool) {
	t.mu.RLock()
	params, whole := t.params[tool], t.whole
	t.mu.RUnlock()
	if whole {
		return params, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	ask = !t.whole && time.Since(t.asked) > askAgain
	if ask {
		t.asked = time.Now()
	}
	return t.params[tool], ask
}

// maxListPages bounds the pages that are read to learn about headers.
const maxListPages = 100

// headerParams returns which arguments of a tool must stand in headers. Where no
// list has passed by yet it is asked for; if that fails nothing is demanded.
func (g *Gateway) headerParams(ctx context.Context, e *endpoint, a surface.Agent, tool string) []wire.HeaderParam {
	table := g.headers.of(tableKey(e, &a))
	params, ask := table.find(tool)
	if !ask {
		return params
	}
	req := mcp.Request{Method: mcp.MethodToolsList}
	for size := 0; size < limit.ServerListBytes; {
		result, err := e.view.Do(ctx, a, req)
		if err != nil {
			break
		}
		size += max(len(result), limit.ServerListBytes/maxListPages)
		table.learn(result)
		cursor, more := jsonx.Get(result, "nextCursor")
		if !more {
			break
		}
		req.Params = jsonx.Set(nil, "cursor", cursor)
	}
	params, _ = table.find(tool)
	return params
}
