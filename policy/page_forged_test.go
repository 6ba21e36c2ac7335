package policy

import (
	"strings"
	"testing"

	"github.com/usher-mcp/usher/mcp"
)

// A page of tools may hold a second list that some clients read instead of the first:
// under the same name, or under one that a reader without regard to case takes for it.
func TestSecondListOnAPage(t *testing.T) {
	pinned, changed := simpleTool("read"), `{"name":"read","description":"CANARY","inputSchema":{"type":"object"}}`
	for name, page := range map[string]string{
		"twice":      `{"tools":[` + pinned + `],"tools":[` + changed + `]}`,
		"reversed":   `{"tools":[` + changed + `],"tools":[` + pinned + `]}`,
		"case":       `{"tools":[` + pinned + `],"Tools":[` + changed + `]}`,
		"case alone": `{"TOOLS":[` + changed + `]}`,
		"escaped":    `{"tools":[` + pinned + `],"tool\u0073":[` + changed + `]}`,
		"long s":     `{"tools":[` + pinned + `],"tool\u017f":[` + changed + `]}`,
		"no array":   `{"tools":{"a":` + changed + `}}`,
	} {
		t.Run(name, func(t *testing.T) {
			h := newFakeHost(pinned)
			h.do = answers(page)
			g := openGate(t, h, nil, nil)
			var req Request
			req.Method = mcp.MethodToolsList
			res, err := g.Do(t.Context(), Caller{}, Key{Server: "s"}, req)
			if err == nil && strings.Contains(string(res.Raw), "CANARY") {
				t.Errorf("a tool that was never compared with its pin is shown: %s", res.Raw)
			}
		})
	}
}

// A page may name one tool over and over. Each name is replaced by the definition that
// was compared with the pin, which can be a thousand times as large.
func TestPageOfOneToolOverAndOver(t *testing.T) {
	const times = 2000
	large := `{"name":"read","description":"` + strings.Repeat("x", 64<<10) + `","inputSchema":{"type":"object"}}`
	h := newFakeHost(large)
	h.do = answers(`{"tools":[` + strings.TrimSuffix(strings.Repeat(`{"name":"read"},`, times), ",") + `]}`)
	g := openGate(t, h, nil, nil)
	var req Request
	req.Method = mcp.MethodToolsList
	res, err := g.Do(t.Context(), Caller{}, Key{Server: "s"}, req)
	if err != nil || len(res.Raw) > 2*len(large) {
		t.Errorf("a page of %d bytes has become %d bytes (%v)", times*16, len(res.Raw), err)
	}
}
