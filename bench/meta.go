package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/usher-mcp/usher/mcp"
)

// meta measures the actions of the one small tool over a thousand tools, as an agent
// feels them.
func meta(ctx context.Context, l *lab) ([]row, error) {
	echo, err := l.startEcho(ctx, "-tools", "50")
	if err != nil {
		return nil, err
	}
	defer echo.stop()
	usher, err := l.startMany(ctx, echo, 20)
	if err != nil {
		return nil, err
	}
	defer usher.stop()
	s, err := load{url: usher.url}.speak(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.conn.Close() }()
	var rows []row
	for _, action := range []struct{ name, arguments string }{
		{"help", ``},
		{"list_servers", ``},
		{"search", `,"query":"find out whose answer comes back, number 7"`},
		{"list_tools", `,"server":"echo7"`},
		{"describe_tool", `,"server":"echo7","tool":"echo_0007"`},
		{"status", ``},
	} {
		var took []time.Duration
		for i := range pick(l, 101, 21) {
			params := fmt.Sprintf(`{"name":"mcp","arguments":{"action":%q%s},%s}`, action.name, action.arguments, modernMeta)
			began := time.Now()
			body, _, err := s.ask("meta/mcp", mcp.MethodToolsCall, "mcp", []byte(params))
			if err != nil {
				return rows, fmt.Errorf("%s: %w", action.name, err)
			}
			if bytes.Contains(body, []byte(`"isError":true`)) {
				return rows, fmt.Errorf("%s failed: %.300s", action.name, body)
			}
			if i > 0 { // the first one reads the lists
				took = append(took, time.Since(began))
			}
		}
		rows = append(rows, row{Part: "meta", Name: action.name, Value: quantile(took, 0.5).Seconds() * 1e3, Unit: "ms", Bar: 5})
	}
	return rows, nil
}
