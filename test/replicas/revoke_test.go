package replicas

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/usher-mcp/usher/internal/person"
)

// usher runs a command of the program beside the replicas and returns what it prints.
func (w *world) usher(args ...string) string {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), w.exe, args...)
	home := w.home("command")
	token, err := person.NewToken(home) // minting a token needs a person
	if err != nil {
		w.t.Fatal(err)
	}
	cmd.Env = append(slices.Clone(w.env), "USHER_HOME="+home, person.TokenVariable+"="+token)
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("usher %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}

// stream opens a stream at a replica and returns, once it has begun, what tells when
// it has ended.
func stream(ctx context.Context, t *testing.T, client *http.Client, method, url, token, body string, headers ...string) <-chan time.Time {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 1)
	if _, err := io.ReadFull(resp.Body, first); err != nil || resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		t.Fatalf("%s %s: %d, %v", method, url, resp.StatusCode, err)
	}
	ended := make(chan time.Time, 1)
	go func() {
		defer func() { _ = resp.Body.Close() }()
		_, _ = io.Copy(io.Discard, resp.Body) // until it ends, in whichever way
		ended <- time.Now()
	}()
	return ended
}

// A token that a third process revokes loses its streams and sessions at every
// replica, whichever store they share.
func TestRevokedTokenLosesItsStreams(t *testing.T) {
	for name, store := range map[string]func(*testing.T) string{
		"PostgreSQL": schema,
		"SQLite":     func(t *testing.T) string { return filepath.Join(t.TempDir(), "usher.db") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, store(t))
			w.servers["math"] = map[string]any{"command": w.exe, "args": []string{"fake"}}
			w.env = append(w.env, "USHER_GATEWAY_AUTH_MODE=token")
			w.start(2)
			gone, kept := w.usher("token", "mint"), w.usher("token", "mint")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			var ends, others []<-chan time.Time
			for _, r := range w.all {
				ends = append(ends, w.streams(ctx, client, r, gone)...)
				others = append(others, w.streams(ctx, client, r, kept)...)
			}
			id := strings.Split(gone, "_")[1]
			w.usher("token", "revoke", id)
			revoked := time.Now()
			for i, ended := range ends {
				select {
				case at := <-ended:
					t.Logf("stream %d ended %v after the command", i, at.Sub(revoked).Round(time.Millisecond))
				case <-time.After(10 * time.Second):
					t.Errorf("stream %d of the revoked token is still open", i)
				}
			}
			for i, ended := range others {
				select {
				case <-ended:
					t.Errorf("stream %d of the other token has ended", i)
				default:
				}
			}
			cancel()
			for _, ended := range others {
				<-ended
			}
		})
	}
}

// streams opens one stream of each kind at a replica.
func (w *world) streams(ctx context.Context, client *http.Client, r *replica, token string) []<-chan time.Time {
	w.t.Helper()
	url := "http://" + r.addr + "/mcp"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url,
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	_ = resp.Body.Close()
	session := resp.Header.Get("Mcp-Session-Id")
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	listen := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},%s}}`, meta)
	return []<-chan time.Time{
		stream(ctx, w.t, client, http.MethodGet, url, token, "", "Mcp-Session-Id", session),
		stream(ctx, w.t, client, http.MethodGet, url, token, ""),
		stream(ctx, w.t, client, http.MethodPost, url, token, listen, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen"),
	}
}
