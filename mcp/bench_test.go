package mcp

import (
	"fmt"
	"strings"
	"testing"
)

// toolCall is a modern tools/call of about size bytes, with the `_meta` that every
// request carries.
func toolCall(size int) []byte {
	meta := `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"progressToken":17}`
	call := fmt.Sprintf(`{"jsonrpc":"2.0","id":1234,"method":"tools/call","params":{"_meta":%s,"name":"search_issues","arguments":{"query":"","limit":20}}}`, meta)
	text := strings.Repeat("the quick brown fox jumps over the lazy dog \\n", max(0, size-len(call))/46+1)
	return []byte(strings.Replace(call, `"query":""`, `"query":"`+text[:max(0, min(len(text)-2, size-len(call)))]+`"`, 1))
}

var sizes = []struct {
	name string
	size int
}{{"300B", 300}, {"64KB", 64 << 10}}

func BenchmarkParse(b *testing.B) {
	for _, s := range sizes {
		raw := toolCall(s.size)
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				if _, err := Parse(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParseAndReadParams(b *testing.B) {
	for _, s := range sizes {
		raw := toolCall(s.size)
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				m, err := Parse(raw)
				if err != nil {
					b.Fatal(err)
				}
				if p, bad := ReadParams(m.Params); bad != nil || p.Name == "" {
					b.Fatal(bad)
				}
			}
		})
	}
}
