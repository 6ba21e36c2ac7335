package headers

import (
	"bytes"
	"strings"
	"sync"
	"time"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/wire"
)

// Tables know which arguments of which tools travel in headers, per endpoint and
// kind of caller.
// They are learned from the lists that pass by, and from one asked for when a tool
// is called before any did.
type Tables struct {
	mu  sync.RWMutex      // guards all
	all map[string]*Table // by tableKey
}

// Table knows the arguments of the tools of one endpoint that travel in headers.
type Table struct {
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

// Of returns the table with this key, which is made if there is none.
func (t *Tables) Of(key string) *Table {
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
			t.all = map[string]*Table{} // they are learned again
		}
		table = &Table{}
		t.all[strings.Clone(key)] = table // it is part of a request
	}
	return table
}

// Learn reads a result of tools/list. Agents may see different parts of a list, so
// what it does not name stays as it is.
func (t *Table) Learn(result []byte) {
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

// Find returns the annotated arguments of a tool; ask says that no list is known
// and that this caller should get one.
func (t *Table) Find(tool string) (params []wire.HeaderParam, ask bool) {
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
