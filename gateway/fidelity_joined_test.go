package gateway_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
)

// The same through the joined endpoint: definitions differ in their name alone, and
// results and arguments in nothing.
func TestFidelityJoined(t *testing.T) {
	const args = `{ "big":9007199254740993, "e":1E+2,"s":"\u00fc ü <b>\/","dup":1,"dup":2 ,"":null}`
	for _, modern := range []bool{true, false} {
		var mu sync.Mutex
		got := map[string][]byte{}
		tools := fake.CorpusTools()
		for i := range tools {
			tools[i].Handle = recorded(&mu, got, tools[i].Handle)
		}
		srv, _ := httpFake(t, "f", &fake.Options{Versions: versionsOf(modern), Tools: tools})
		other, _ := httpFake(t, "other", nil)
		s := newStack(t, nil, srv, other)
		for _, version := range []string{mcp.Latest, mcp.LatestLegacy} {
			a := newAgent(t, s.url+"/direct/mcp", version, `{}`)
			list := a.do(long(t), mcp.MethodToolsList, `{}`, nil)
			for _, sample := range fake.Corpus() {
				where := fmt.Sprintf("server modern %t, agent %s, %s", modern, version, sample.Name)
				shown := shownAs(list.result, sample.Tool)
				if shown == "" {
					t.Errorf("%s: the definition is not in the list as it was sent", where)
					continue
				}
				res := a.call(long(t), shown, args, nil)
				if !bytes.Equal(res.result, sample.Result) {
					t.Errorf("%s: result\n got %s\nwant %s", where, res.result, sample.Result)
				}
				mu.Lock()
				if string(got[sample.ToolName()]) != args {
					t.Errorf("%s: arguments arrived as %s", where, got[sample.ToolName()])
				}
				mu.Unlock()
			}
		}
	}
}

// shownAs is the name under which a list has a definition that is the same but for
// its name, "" when there is none.
func shownAs(list, tool []byte) string {
	nameless := func(def []byte) []byte { return jsonx.Set(def, "name", []byte(`""`)) }
	tools, _ := jsonx.Get(list, "tools")
	for e := jsonx.Array(tools); e.Next(); {
		if bytes.Equal(nameless(e.Value), nameless(tool)) {
			return jsonx.GetText(e.Value, "name")
		}
	}
	return ""
}
