package mcp

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// envelopes are messages, near messages and attacks, for tables and fuzz targets
// alike.
var envelopes = []string{
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":1},"_meta":{"progressToken":7}}}`,
	`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	`{"jsonrpc":"2.0","id":"a","result":{}}`,
	`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}`,
	`{"jsonrpc":"2.0","error":{"code":-32700.0,"message":"x","data":{"supported":["2025-11-25"]}}}`,
	`{"jsonrpc":"2.0","id":9007199254740993,"result":null}`,
	`{"jsonrpc":"2.0","id":1,"result":{"ttlMs":1e400,"cacheScope":"public","resultType":"complete"}}`,
	`{"jsonrpc":"2.0","id":1,"method":"x","params":null}`,
	`{"jsonrpc":"2.0","id":1,"result":{},"error":null}`,
	`{"jsonrpc":"2.0","id":1,"ID":2,"method":"x"}`,
	`{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}`,
	`{"jsonrpc":"2.0","id":1,"\u0069d":2,"method":"x"}`,
	`{"jsonrpc":"2.0","id":1,"method":"x","param\u017f":{}}`,
	`{"jsonrpc":"2.0","id":1,"method\u0000":"y","method":"x"}`,
	`{"jsonrpc":"2.0","id":1,"method":"x","unknown":1,"unknown":2}`,
	`{"jsonrpc":"2.0","id":{},"method":"x"}`,
	`{"jsonrpc":"2.0","id":1,"method":"a\u0000b"}`,
	`{"jsonrpc":"2.0","id":1,"method":"\ud800"}`,
	`[{"jsonrpc":"2.0","id":1,"method":"x"},{"jsonrpc":"2.0","method":"y"}]`,
	`[]`, `[1,`, `{}`, `null`, ``, `{"jsonrpc":"2.0"`, "\v{}", "{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}",
	" \r\n{\"jsonrpc\": \"2.0\",\n\"method\": \"x\"}\n",
}
