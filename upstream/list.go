package upstream

import (
	"context"
	"fmt"
	"time"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/wire"
)

// Bounds of a list. A server that never stops paging must not hold up anybody.
const (
	MaxPages = 1000
	MaxItems = 50_000
)

// List is a whole list of a server: all pages, items raw.
type List struct {
	Items    [][]byte
	TTL      time.Duration // shortest of all pages, 0 when the server did not say
	Public   bool          // all pages are public
	Received time.Time
}

// listKeys names the member that holds the items.
func listKey(method string) string {
	switch method {
	case wire.MethodToolsList:
		return "tools"
	case wire.MethodPromptsList:
		return "prompts"
	case wire.MethodResourcesList:
		return "resources"
	case wire.MethodTemplatesList:
		return "resourceTemplates"
	}
	return ""
}

// List fetches all pages of tools/list, prompts/list, resources/list or
// resources/templates/list. A cursor that comes twice and too many pages or items
// are a protocol violation; an empty string is a cursor like any other. Tools that
// may not be offered are left out, see [Conn.LearnTools].
func (c *Conn) List(ctx context.Context, method string) (List, error) {
	key := listKey(method)
	if key == "" {
		return List{}, fmt.Errorf("%s: %s is no list", c.server.Name, method)
	}
	list := List{Public: true, Received: time.Now()}
	seen := map[string]bool{}
	var params []byte
	for page := 1; ; page++ {
		result, err := c.Do(ctx, Request{Method: method, Params: params})
		if err != nil {
			return List{}, err
		}
		if err := list.add(result, key, page == 1); err != nil {
			return List{}, &ProtocolError{Server: c.server.Name, Msg: "its " + key + " cannot be read", Err: err}
		}
		cursor, more := jsonx.Get(result, "nextCursor")
		if !more || string(cursor) == "null" {
			break
		}
		switch {
		case seen[string(cursor)]:
			return List{}, &ProtocolError{Server: c.server.Name, Msg: fmt.Sprintf("%s returns the cursor %.40s again and again", method, cursor)}
		case page >= MaxPages || len(list.Items) > MaxItems:
			return List{}, &ProtocolError{Server: c.server.Name, Msg: fmt.Sprintf("%s does not end: %d pages, %d items", method, page, len(list.Items))}
		}
		seen[string(cursor)] = true
		params = jsonx.Set(nil, "cursor", cursor)
	}
	if method == wire.MethodToolsList {
		list.Items = c.LearnTools(list.Items)
	}
	return list, nil
}

func (l *List) add(result []byte, key string, first bool) error {
	items, ok := jsonx.Get(result, key)
	if !ok {
		return fmt.Errorf("the result has no member %q", key)
	}
	e := jsonx.Array(items)
	for e.Next() {
		if jsonx.TypeOf(e.Value) != "object" {
			continue // null entries and the like name nothing that could be used
		}
		l.Items = append(l.Items, e.Value)
	}
	f := wire.ReadFreshness(result)
	if first || f.TTL < l.TTL {
		l.TTL = f.TTL
	}
	l.Public = l.Public && f.Public
	return e.Err()
}
