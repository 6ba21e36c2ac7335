package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/upstream"
)

// connect opens a session by the way in that was asked for.
func connect(ctx context.Context, t task) (session, error) {
	switch t.via {
	case "library":
		if strings.HasPrefix(t.name, "auth/") {
			return connectHosted(ctx, t)
		}
		return connectLibrary(ctx, t)
	case "gateway":
		return connectGateway(ctx, t)
	}
	return nil, fmt.Errorf("--via %s: %w", t.via, errUsage)
}

// library is usher called as a Go library.
type library struct {
	conn   *upstream.Conn
	answer mcp.Responder
}

func connectLibrary(ctx context.Context, t task) (*library, error) {
	answer := accept(t.scenario.answer)
	server := config.Server{Name: "conformance", Transport: config.TransportHTTP, URL: t.url}.WithDefaults()
	conn, err := upstream.Dial(ctx, &server, &upstream.Options{
		ClientName:    "usher-conformance",
		ClientVersion: "1",
		Capabilities:  []byte(`{"elicitation":{"form":{"applyDefaults":true}}}`),
		OnRequest:     answer, // older servers may ask outside the stream of a call
		Log:           t.log,
	})
	if err != nil {
		return nil, err
	}
	return &library{conn: conn, answer: answer}, nil
}

// accept is a person who agrees to every form and fills in content.
func accept(content string) mcp.Responder {
	return func(_ context.Context, method string, params []byte) ([]byte, *mcp.Error) {
		if method != mcp.MethodElicit {
			return nil, mcp.Errorf(mcp.CodeMethodNotFound, "%s is not offered", method)
		}
		return upstream.AcceptForm(params, []byte(content)), nil
	}
}

func (l *library) list(ctx context.Context, method string) ([][]byte, error) {
	all, err := l.conn.List(ctx, method)
	return all.Items, err
}

func (l *library) request(ctx context.Context, method string, params []byte) ([]byte, error) {
	return l.conn.Call(ctx, mcp.Request{Method: method, Params: params}, l.answer)
}

func (l *library) close() error { return l.conn.Close() }
