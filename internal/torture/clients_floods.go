package torture

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// clientFlood is one way in which clients are hostile.
type clientFlood struct {
	name    string
	clients int
	held    int // how many connections all clients together hold at once, where they do
	// run floods until ctx ends. It calls sent after each request, which waits a little:
	// what is measured is the gateway, not how long the queue for a processor is.
	run func(ctx context.Context, g *gatewayProcess, sent func(), share, client int)
}

func clientFloods() []clientFlood {
	return []clientFlood{
		{"a flood of batches", 4, 0, floodMessages(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{}}}`)},
		{"a flood of notifications", 4, 0, floodMessages(`{"jsonrpc":"2.0","method":"notifications/x%d"}`)},
		{"a flood of changed roots", 4, 0, floodMessages(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed","params":{"_meta":{"n":%d}}}`)},
		{"idle connections", 8, 5000, floodConnections},
		{"a flood of sessions", 4, 0, floodSessions},
		{"forged tokens", 4, 0, floodForged},
	}
}

// floodMessages sends batches of one kind of message.
func floodMessages(message string) func(context.Context, *gatewayProcess, func(), int, int) {
	return func(ctx context.Context, g *gatewayProcess, sent func(), _, client int) {
		session, err := g.initialize(ctx, g.bad, "2025-03-26")
		if err != nil {
			return // it is refused, which is as well
		}
		for n := 0; ctx.Err() == nil; n++ {
			var batch []string
			for i := range 100 {
				batch = append(batch, fmt.Sprintf(message, (n*8+client)*100+i))
			}
			_, _, _ = g.send(ctx, http.MethodPost, g.bad, session, "["+strings.Join(batch, ",")+"]", false) // whatever comes of it
			sent()
		}
	}
}

// floodConnections opens connections and says nothing on them, or something that is
// refused, and opens those again that are closed.
func floodConnections(ctx context.Context, g *gatewayProcess, sent func(), share, _ int) {
	address := strings.TrimPrefix(g.url, "http://")
	address, _, _ = strings.Cut(address, "/")
	var open []net.Conn
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	for n := 0; ctx.Err() == nil; n++ {
		if len(open) == share {
			_ = open[0].Close()
			open = open[1:]
			sent()
		}
		c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			pause(ctx, 20*time.Millisecond)
			continue
		}
		if n%2 == 0 {
			_, _ = io.WriteString(c, "POST /mcp HTTP/1.1\r\nHost: "+address+"\r\nContent-Length: 0\r\n\r\n") // it may be closed
		}
		open = append(open, c)
	}
}

// floodSessions opens sessions and leaves them.
func floodSessions(ctx context.Context, g *gatewayProcess, sent func(), _, _ int) {
	for ctx.Err() == nil {
		_, _ = g.initialize(ctx, g.bad, "2025-11-25") // it may be refused
		sent()
	}
}

// floodForged sends tokens with key ids that there are not.
func floodForged(ctx context.Context, g *gatewayProcess, sent func(), _, _ int) {
	encode := base64.RawURLEncoding.EncodeToString
	for ctx.Err() == nil {
		token := encode([]byte(`{"alg":"RS256","kid":"`+rand.Text()+`"}`)) + "." + encode([]byte(`{}`)) + "." + encode(make([]byte, 256))
		_, _, _ = g.send(ctx, http.MethodPost, token, "", "{}", false) // it is refused
		sent()
	}
}

// initialize opens a session.
func (g *gatewayProcess) initialize(ctx context.Context, token, version string) (session string, err error) {
	body := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	header, answer, err := g.send(ctx, http.MethodPost, token, "", body, false)
	if err != nil {
		return "", err
	}
	if session = header.Get("Mcp-Session-Id"); session == "" {
		return "", fmt.Errorf("initialize was answered with %.200s", answer)
	}
	return session, nil
}

// echo makes a call and checks its answer.
func (g *gatewayProcess) echo(ctx context.Context, session, mark string, fresh bool) error {
	ctx, stop := context.WithTimeout(ctx, 30*time.Second)
	defer stop()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"mark":"` + mark + `"}}}`
	_, answer, err := g.send(ctx, http.MethodPost, g.good, session, body, fresh)
	if err == nil && !strings.Contains(answer, mark) {
		err = fmt.Errorf("answered with %.200s", answer)
	}
	return err
}

// send sends a request, on a connection of its own if it is to be fresh.
func (g *gatewayProcess) send(ctx context.Context, method, token, session, body string, fresh bool) (http.Header, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, g.url, strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+token)
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	client := g.keepAlive
	if fresh {
		client = g.once
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.Header, string(text), err
}
