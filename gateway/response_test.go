package gateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/mcp"
)

func TestCompletionsAreBounded(t *testing.T) {
	var c completions
	for i := range limit.Completions + 10 {
		result := []byte(`{"tools":[],"x":"` + strings.Repeat("x", longList) + `"}`)
		first, again := c.complete(fmt.Sprint(i), mcp.MethodToolsList, result), c.complete(fmt.Sprint(i), mcp.MethodToolsList, result)
		if first.more == "" || first.more != again.more {
			t.Fatalf("list %d: %q, then %q", i, first.more, again.more)
		}
	}
	if len(c.all) > limit.Completions {
		t.Errorf("%d lists are remembered", len(c.all))
	}
}
