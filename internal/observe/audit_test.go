package observe

import (
	"strings"
	"testing"

	"github.com/usher-mcp/usher/policy"
)

// A URI is masked before it is cut to the length that the audit log takes.
func TestLongURIsAreMaskedBeforeTheyAreCut(t *testing.T) {
	a := auditRecord(policy.Finished{Method: "resources/read", Tool: "https://ann:" + strings.Repeat("hunter2", 200) + "@example.com/a"})
	if strings.Contains(a.Target, "hunter2") {
		t.Errorf("target %q", a.Target)
	}
	if a := auditRecord(policy.Finished{Method: "tools/call", Tool: "a?b=c"}); a.Target != "a?b=c" {
		t.Errorf("the name of a tool was changed: %q", a.Target)
	}
}
