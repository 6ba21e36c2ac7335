package surface

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/usher-mcp/usher/surface/search"
)

// tool is a definition with string parameters.
func tool(name, title, description string, params ...string) []byte {
	var p []string
	for _, param := range params {
		p = append(p, fmt.Sprintf(`%q:{"type":"string","description":"the %s"}`, param, param))
	}
	return fmt.Appendf(nil, `{"name":%q,"title":%q,"description":%q,"inputSchema":{"type":"object","properties":{%s}}}`,
		name, title, description, strings.Join(p, ","))
}

// many are n tools of a hundred servers with long descriptions.
func many(n int) []search.Document {
	r := rand.New(rand.NewPCG(1, 2))
	words := []string{"create", "list", "delete", "update", "search", "issue", "project", "file", "message", "user"}
	docs := make([]search.Document, n)
	for i := range docs {
		var text strings.Builder
		for range 15 {
			fmt.Fprintf(&text, "%s the %s%d ", words[r.IntN(5)], words[5+r.IntN(5)], r.IntN(500))
		}
		name := fmt.Sprintf("%s_%s_%d", words[r.IntN(5)], words[5+r.IntN(5)], i)
		docs[i] = search.Document{Server: fmt.Sprintf("server%d", i%100), Tool: name, Definition: tool(name, "", text.String(), "id")}
	}
	return docs
}
