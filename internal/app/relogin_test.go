package app

import (
	"errors"
	"testing"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/vault"
)

// The login of one principal, which it can repeat without a person, closes no circuit
// of another one.
func TestReloginLeavesOthersAlone(t *testing.T) {
	srv := config.Server{Name: "away", Transport: config.TransportHTTP, URL: "http://127.0.0.1:9/mcp"}.WithDefaults()
	srv.Supervision.CircuitThreshold, srv.Supervision.MaxRestarts = 1, 1000
	h, err := Open(t.Context(), &Options{Config: &config.Config{Servers: []config.Server{srv}}, Store: vault.NewMemory()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	alice := host.Key{Principal: "alice", Server: "away"}
	call := func() error {
		_, err := h.hosted.Do(t.Context(), alice, host.Request{Request: mcp.Request{Method: mcp.MethodToolsCall, Params: []byte(`{"name":"x"}`)}})
		return err
	}
	for range 10 {
		if errors.Is(call(), host.ErrCircuitOpen) {
			break
		}
	}
	if err := h.Logins().Reconnect(t.Context(), auth.Account{Principal: "bob", Server: "away"}); err != nil {
		t.Fatal(err)
	}
	if err := call(); !errors.Is(err, host.ErrCircuitOpen) {
		t.Errorf("after the login of another principal: %v, want %v", err, host.ErrCircuitOpen)
	}
}
