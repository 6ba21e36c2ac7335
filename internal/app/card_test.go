package app

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/internal/servercard"
	"github.com/usher-mcp/usher/vault"
)

const aCard = `{"name": "com.example/notes", "version": "1", "description": "Keeps notes", "tools": [{"name": "add"}, {"name": "drop"}, {"name": "secret"}]}`

func TestCardFromPath(t *testing.T) {
	f := openFiled(t, `{"mcpServers": {"notes": {"command": "x", "card": "cards/notes.json"}, "none": {"command": "x"}, "dir": {"command": "x", "card": "."}},
		"usher": {"policy": {"deny": ["notes/secret"]}}}`)
	path := filepath.Join(filepath.Dir(f.path), "cards", "notes.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(aCard), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := f.Catalog().Card(t.Context(), "notes")
	if err != nil || c.Name != "com.example/notes" || c.Seen || len(c.Tools) != 2 || c.Tools[0].State != servercard.Announced || c.Tools[1].Name != "drop" {
		t.Errorf("%v, %+v", err, c)
	}
	if _, known, _ := f.gate.Known(t.Context(), f.self, host.Key{Principal: f.principal, Server: "notes"}); known {
		t.Error("a card became a list of tools")
	}
	if _, err := f.Catalog().Card(t.Context(), "none"); !errors.Is(err, servercard.ErrNone) {
		t.Errorf("none: %v", err)
	}
	if _, err := f.Catalog().Card(t.Context(), "dir"); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a directory: %v", err)
	}
}

// TestCardFromURL: no credentials are sent, redirects are not followed, and addresses
// that nobody wrote down are not reached.
func TestCardFromURL(t *testing.T) {
	var sent http.Header
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/card", http.StatusFound)
			return
		}
		fmt.Fprint(w, aCard)
	}))
	defer srv.Close()
	f := openFiled(t, fmt.Sprintf(`{"mcpServers": {
		"good": {"url": "%[1]s/mcp", "card": "%[1]s/card?token=canary", "headers": {"Authorization": "Bearer canary"}},
		"moved": {"url": "%[1]s/mcp", "card": "%[1]s/moved"},
		"cloud": {"url": "%[1]s/mcp", "card": "http://169.254.169.254/card"},
		"down": {"url": "%[1]s/mcp", "card": "http://127.0.0.1:1/card?token=canary"}
	}}`, srv.URL))
	c, err := f.Catalog().Card(t.Context(), "good")
	if err != nil || len(c.Tools) != 3 || strings.Contains(c.Source, "canary") {
		t.Errorf("%v, %+v", err, c)
	}
	if sent.Get("Authorization") != "" || sent.Get("Cookie") != "" {
		t.Errorf("credentials were sent: %v", sent)
	}
	for name, want := range map[string]string{"moved": "status 302", "cloud": "link-local", "down": "refused"} {
		if _, err := f.Catalog().Card(t.Context(), name); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCardNeedsApproval: a project's file does not choose what is fetched or read.
func TestCardNeedsApproval(t *testing.T) {
	asked := false
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer srv.Close()
	cfg, err := config.Parse("/p/.mcp.json", []byte(`{"mcpServers": {"a": {"url": "https://x.example", "card": "`+srv.URL+`"}}}`), config.LayerProject)
	if err != nil {
		t.Fatal(err)
	}
	h := openCard(t, cfg, nil)
	if _, err := h.Catalog().Card(t.Context(), "a"); !errors.Is(err, host.ErrHeldBack) || asked {
		t.Errorf("%v, asked: %v", err, asked)
	}
	if err := h.Approvals().Approve(t.Context(), vault.Approval{Digest: cfg.Servers[0].Digest(), Server: "a"}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Catalog().Card(t.Context(), "a"); err == nil || !asked {
		t.Errorf("approved: %v, asked: %v", err, asked)
	}
}

// TestCardIsBounded in bytes and time.
func TestCardIsBounded(t *testing.T) {
	a := config.Server{Name: "a", URL: "https://x.example", Card: "https://x.example/card"}.WithDefaults()
	cfg := &config.Config{Usher: config.DefaultSettings(), Servers: []config.Server{a}}
	long := roundTripper(func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		fmt.Fprint(w, `{"name": "x"}`, strings.Repeat(" ", 2*limit.CardBytes))
		return w.Result(), nil
	})
	if _, err := openCard(t, cfg, long).Catalog().Card(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("a long card: %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		slow := roundTripper(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		h := openCard(t, cfg, slow)
		begun := time.Now()
		if _, err := h.Catalog().Card(t.Context(), "a"); err == nil || time.Since(begun) != limit.CardTime {
			t.Errorf("a slow card: %v after %v", err, time.Since(begun))
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func openCard(t *testing.T, cfg *config.Config, rt http.RoundTripper) *App {
	t.Helper()
	h, err := Open(t.Context(), &Options{Config: cfg, Store: vault.NewMemory(), Transport: rt})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}
