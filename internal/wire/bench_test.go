package wire

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
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

func BenchmarkEditMeta(b *testing.B) {
	for _, s := range sizes {
		m, err := mcp.Parse(toolCall(s.size))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(m.Params)))
			for b.Loop() {
				EditMeta(m.Params,
					jsonx.Edit{Key: mcp.MetaProgress, Value: []byte("42")},
					jsonx.Edit{Key: mcp.MetaClientCaps, Value: []byte(`{"elicitation":{}}`)})
			}
		})
	}
}

func BenchmarkLines(b *testing.B) {
	for _, s := range sizes {
		line := append(toolCall(s.size), '\n')
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(line)))
			l := NewLines(&again{data: line}, 16<<20)
			for b.Loop() {
				if _, err := l.Next(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEvents(b *testing.B) {
	for _, s := range sizes {
		event := AppendEvent(nil, "", toolCall(s.size))
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(event)))
			e := NewEvents(&again{data: event}, 16<<20)
			for b.Loop() {
				if _, err := e.Next(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// again yields data endlessly.
type again struct {
	data []byte
	r    bytes.Reader
}

func (a *again) Read(p []byte) (int, error) {
	if a.r.Len() == 0 {
		a.r.Reset(a.data)
	}
	n, err := a.r.Read(p)
	if err == io.EOF {
		err = nil
	}
	return n, err
}
