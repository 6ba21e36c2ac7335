package app

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
)

// TestControlLogin has a program drive a login of a running usher over its control
// socket: it reads events from one request and sends the answer with another.
func TestControlLogin(t *testing.T) {
	as := fake.NewAuth(nil)
	_, stop, err := as.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	cfg := &config.Config{Usher: config.DefaultSettings(), Servers: []config.Server{protected(t, "notes", as)}}
	h := opened(t, cfg)
	socket := httptest.NewServer((&controlServer{h}).handler())
	t.Cleanup(socket.Close)
	resp, err := http.Post(socket.URL+"/login?server=notes&mode=all", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var phases []string
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		var line struct {
			Status, Phase string
			AuthorizeURL  string `json:"authorize_url"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v", lines.Bytes(), err)
		}
		phases = append(phases, line.Phase)
		if line.Status != "pending" {
			continue
		}
		back, err := as.Consent(t.Context(), line.AuthorizeURL)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.Post(socket.URL+"/login/answers", "", strings.NewReader(back.String()+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	if len(phases) == 0 || phases[len(phases)-1] != "connected" {
		t.Errorf("phases %q, want connected at the end", phases)
	}
}
