package upstream_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"testing"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/upstream"
)

// BenchmarkDo is what one call costs on a connection over HTTP, with a peer that does
// next to nothing.
func BenchmarkDo(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go parrot(c)
		}
	}()
	srv := config.Server{Name: "parrot", Transport: config.TransportHTTP, URL: "http://" + l.Addr().String() + "/mcp"}.WithDefaults()
	conn, err := upstream.Dial(b.Context(), &srv, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	req := mcp.Request{Method: mcp.MethodToolsCall, Params: []byte(`{"name":"echo","arguments":{"nonce":1}}`)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := conn.Do(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
}

// parrot gives every request the same result.
func parrot(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	var body, out []byte
	for {
		length := 0
		for {
			line, err := r.ReadSlice('\n')
			if err != nil {
				return
			}
			if len(line) == 2 {
				break
			}
			if v, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
				length, _ = strconv.Atoi(string(bytes.TrimSpace(v)))
			}
		}
		body = append(body[:0], make([]byte, length)...)
		if _, err := io.ReadFull(r, body); err != nil {
			return
		}
		id, _ := jsonx.Get(body, "id")
		answer := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"content":[],"supportedVersions":[%q],"capabilities":{"tools":{}},"resultType":"complete"}}`, id, mcp.Latest)
		out = fmt.Appendf(out[:0], "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(answer), answer)
		if _, err := c.Write(out); err != nil {
			return
		}
	}
}
