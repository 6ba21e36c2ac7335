package upstream

import (
	"context"
	"fmt"
	"time"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/mcp"
)

// List is a whole list of a server: all pages, items raw.
type List struct {
	Items    [][]byte
	TTL      time.Duration // shortest of all pages, 0 when the server did not say
	Public   bool          // all pages are public
	Received time.Time

	left leftOut
}

// listKeys names the member that holds the items.
func listKey(method string) string {
	switch method {
	case mcp.MethodToolsList:
		return "tools"
	case mcp.MethodPromptsList:
		return "prompts"
	case mcp.MethodResourcesList:
		return "resources"
	case mcp.MethodTemplatesList:
		return "resourceTemplates"
	}
	return ""
}

// List fetches all pages of tools/list, prompts/list, resources/list or
// resources/templates/list. A cursor that comes twice and too many pages, items or
// bytes are a protocol violation; an empty string is a cursor like any other.
// Definitions that exceed a limit are left out, and so are tools that may not be
// offered, see [Conn.LearnTools].
func (c *Conn) List(ctx context.Context, method string) (List, error) {
	key := listKey(method)
	if key == "" {
		return List{}, fmt.Errorf("%s: %s is not a list method", c.server.Name, method)
	}
	caller, whole := ctx, max(limit.ServerListTime, c.server.Timeouts.List)
	ctx, stop := context.WithTimeout(ctx, whole)
	defer stop()
	list := List{Public: true, Received: time.Now()}
	seen := map[string]bool{}
	var params []byte
	var size int64
	for page := 1; ; page++ {
		result, err := c.Do(ctx, mcp.Request{Method: method, Params: params})
		if err != nil && ctx.Err() != nil && caller.Err() == nil {
			return List{}, c.tooLong(method, "it takes more than %s", whole)
		}
		if err != nil {
			return List{}, err
		}
		// All of a page counts: its items hold the whole of it in memory.
		if size += int64(len(result)); size > max(limit.ServerListBytes, c.limit) {
			return List{}, c.tooLong(method, "it has more than %d bytes", max(limit.ServerListBytes, c.limit))
		}
		if err := list.add(result, key, page == 1); err != nil {
			return List{}, &ProtocolError{Server: c.server.Name, Msg: "its " + key + " cannot be read", Err: err}
		}
		if len(list.Items) > limit.ServerListItems {
			return List{}, c.tooLong(method, "it has more than %d entries", limit.ServerListItems)
		}
		cursor, more := jsonx.Get(result, "nextCursor")
		if !more || string(cursor) == "null" {
			break
		}
		if seen[string(cursor)] {
			return List{}, &ProtocolError{Server: c.server.Name, Msg: fmt.Sprintf("%s returns the cursor %.40s again and again", method, cursor)}
		}
		if page >= limit.ServerListPages {
			return List{}, c.tooLong(method, "it has more than %d pages", page)
		}
		seen[string(cursor)] = true
		params = jsonx.Set(nil, "cursor", cursor)
	}
	c.warnLeftOut(method, list.left)
	if method == mcp.MethodToolsList {
		list.Items = c.LearnTools(list.Items)
	}
	return list, nil
}

// tooLong is the error for a list beyond a limit.
func (c *Conn) tooLong(method, format string, args ...any) error {
	return &ProtocolError{Server: c.server.Name, Msg: method + " is too long: " + fmt.Sprintf(format, args...), Err: ErrLimit}
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
		if l.left.exceeds(key, e.Value) {
			continue
		}
		l.Items = append(l.Items, e.Value)
	}
	f := mcp.ReadFreshness(result)
	if first || f.TTL < l.TTL {
		l.TTL = f.TTL
	}
	l.Public = l.Public && f.Public
	return e.Err()
}
