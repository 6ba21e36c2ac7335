package gateway

import (
	"context"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/surface"
)

// lookAfter is when a gateway looks for the first time whether an agent is still there.
const lookAfter = 50 * time.Millisecond

// oneConn is a listener with one connection.
type oneConn struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *oneConn) Close() error   { close(l.closed); return nil }
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// onConn serves one connection within a bubble and runs f as the agent.
func onConn(t *testing.T, opt *Options, do func(ctx context.Context, name string) string, f func(agent net.Conn)) {
	t.Helper()
	g := New(&script{do: func(ctx context.Context, _ surface.Agent, r mcp.Request) ([]byte, error) {
		p, _ := mcp.ReadParams(r.Params)
		return fmt.Appendf(nil, `{"content":[],"resultType":"complete","said":%q}`, do(ctx, p.Name)), ctx.Err()
	}}, opt)
	ours, theirs := net.Pipe()
	l := &oneConn{make(chan net.Conn, 1), make(chan struct{})}
	l.conns <- theirs
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- g.Serve(ctx, l, nil) }()
	f(ours)
	_ = ours.Close()
	stop()
	<-served
}

// ask writes a call of a tool.
func ask(agent net.Conn, tool string) error {
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `",` + goodMeta + `}}`
	_, err := fmt.Fprintf(agent, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json\r\n"+
		"Mcp-Protocol-Version: %s\r\nMcp-Method: tools/call\r\nMcp-Name: %s\r\nContent-Length: %d\r\n\r\n%s", mcp.Latest, tool, len(body), body)
	return err
}

// An agent that leaves in the middle of a call ends it, at once or after the first look,
// with a token or without.
func TestHangup(t *testing.T) {
	auth := &fixed{}
	auth.Store(&authn.Identity{Principal: "ada", Credential: "x", Expires: time.Now().Add(time.Hour)})
	for _, opt := range []*Options{nil, {Auth: auth}} {
		checkHangup(t, opt)
	}
}

func checkHangup(t *testing.T, opt *Options) {
	t.Helper()
	for after, noticed := range map[time.Duration]time.Duration{time.Millisecond: lookAfter, time.Hour: time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan time.Duration, 1)
			began := time.Now()
			onConn(t, opt, func(ctx context.Context, _ string) string {
				<-ctx.Done()
				ended <- time.Since(began)
				return ""
			}, func(agent net.Conn) {
				if err := ask(agent, "slow"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(after)
				_ = agent.Close()
				if got := <-ended; got != noticed {
					t.Errorf("left after %v, noticed after %v, want %v", after, got, noticed)
				}
			})
		})
	}
}
