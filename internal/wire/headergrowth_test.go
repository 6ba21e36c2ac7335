package wire

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/test/need"
)

func TestHeaderPathsAreLimited(t *testing.T) {
	for depth, fits := range map[int]bool{limit.HeaderPathDepth: true, limit.HeaderPathDepth + 1: false} {
		schema := strings.Repeat(`{"properties":{"a":`, depth) + `{"type":"string","x-mcp-header":"Deep"}` + strings.Repeat(`}}`, depth)
		if _, err := HeaderParams([]byte(schema)); (err == nil) != fits {
			t.Errorf("depth %d: %v", depth, err)
		}
	}
}

// manyHeaders are n headers on arguments, every second one nested.
func manyHeaders(n int) (params []HeaderParam) {
	for i := range n {
		h := HeaderParam{Path: []string{fmt.Sprint("a", i)}, Name: fmt.Sprint("H", i)}
		if i%2 == 1 {
			h.Path = []string{"deep", fmt.Sprint("a", i)}
		}
		params = append(params, h)
	}
	return params
}

// TestHeadersAreReadOnce: the time does not grow with the product of the number of
// headers and the size of the arguments.
func TestHeadersAreReadOnce(t *testing.T) {
	arguments := []byte(`{"x":"` + strings.Repeat("a", 1<<20) + `","deep":{"y":"` + strings.Repeat("b", 1<<20) + `"}}`)
	few := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			HeaderValues(manyHeaders(1), arguments, func(HeaderParam, string) {})
		}
	}).NsPerOp()
	for range 5 {
		many := testing.Benchmark(func(b *testing.B) {
			for b.Loop() {
				HeaderValues(manyHeaders(maxHeaderParams), arguments, func(HeaderParam, string) {})
			}
		}).NsPerOp()
		if many < 10*few {
			return
		}
	}
	t.Errorf("%d headers take more than 10 times as long as one", maxHeaderParams)
}

func TestHeaderSchemasAreReadInLinearTime(t *testing.T) {
	need.Linear(t, 2000, func(n int) func() {
		schema := []byte(strings.Repeat(`{"x-mcp-headers":[],"items":`, min(n, 300)) + `{"enum":[` + strings.TrimSuffix(strings.Repeat(`"\u0061",`, n), ",") + `]}` + strings.Repeat(`}`, min(n, 300)))
		return func() { _, _ = HeaderParams(schema) }
	})
}

// FuzzHeaderValues compares with looking for each header by itself.
func FuzzHeaderValues(f *testing.F) {
	f.Add([]byte(`{"a0":"x","a2":7,"a2":8,"deep":{"a1":true,"a3":[]},"a4":null}`))
	f.Add([]byte(`{"deep":{"a1":1},"deep":{"a1":2}}`))
	params := manyHeaders(12)
	f.Fuzz(func(t *testing.T, arguments []byte) {
		if jsonx.Valid(arguments) != nil {
			return
		}
		want, got := map[string]string{}, map[string]string{}
		for _, h := range params {
			if v, ok := h.Value(arguments); ok {
				want[h.Name] = v
			}
		}
		HeaderValues(params, arguments, func(h HeaderParam, v string) { got[h.Name] = v })
		if !maps.Equal(want, got) {
			t.Fatalf("%s: %v, want %v", arguments, got, want)
		}
	})
}
