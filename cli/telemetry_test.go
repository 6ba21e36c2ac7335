package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
)

// serving is a running `usher serve --http` in this process.
type serving struct {
	mcp, metrics string // addresses
	before       string // what it said until it served
	system       config.System
	stop         func() (log string)
}

// serveHere starts it over one fake server named math.
func serveHere(t *testing.T, telemetry map[string]any, env map[string]string, args ...string) serving {
	t.Helper()
	home := t.TempDir()
	url, end, err := fake.New(&fake.Options{Name: "math"}).Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	text, err := json.Marshal(map[string]any{
		"mcpServers": map[string]any{"math": map[string]string{"url": url + "/mcp"}}, "usher": map[string]any{"telemetry": telemetry},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "mcp.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	sys := config.System{Home: home, Workdir: home, LookupEnv: func(name string) (string, bool) {
		if name == "USHER_HOME" {
			return home, true
		}
		v, ok := env[name]
		return v, ok
	}}
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	done := make(chan int, 1)
	go func() {
		args := append([]string{"serve", "--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--no-console"}, args...)
		done <- Run(ctx, args, cmdutil.IO{In: strings.NewReader(""), Out: io.Discard, Err: w, Width: 80, System: sys})
		_ = w.Close()
	}()
	s := serving{system: sys}
	lines := bufio.NewScanner(r)
	for s.mcp == "" && lines.Scan() {
		s.before += lines.Text() + "\n"
		if m := regexp.MustCompile(`^metrics on (http://.*)/metrics$`).FindStringSubmatch(lines.Text()); m != nil {
			s.metrics = m[1]
		}
		if m := regexp.MustCompile(`^serving (http://.*)/mcp$`).FindStringSubmatch(lines.Text()); m != nil {
			s.mcp = m[1]
		}
	}
	var rest bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines.Scan() {
			rest.WriteString(lines.Text() + "\n")
		}
	}()
	s.stop = func() string {
		cancel()
		if code := <-done; code != cmdutil.ExitOK {
			t.Errorf("serve: exit code %d", code)
		}
		<-read
		return rest.String()
	}
	if s.mcp == "" || s.metrics == "" {
		t.Fatalf("serving at %q, metrics at %q", s.mcp, s.metrics)
	}
	return s
}

func fetch(t *testing.T, method, url, body string, head ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(head); i += 2 {
		req.Header.Set(head[i], head[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections()
	return resp.StatusCode, string(text)
}

// callAdd calls math/add once.
func (s serving) callAdd(t *testing.T) {
	t.Helper()
	status, answer := fetch(t, http.MethodPost, s.mcp+"/servers/math/mcp",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "add")
	if status != http.StatusOK || !strings.Contains(answer, `"3"`) {
		t.Fatalf("%d %s", status, answer)
	}
}

func TestMetrics(t *testing.T) {
	s := serveHere(t, map[string]any{"logFormat": "json", "logLevel": "debug"}, nil)
	s.callAdd(t)
	for _, base := range []string{s.mcp, s.metrics} {
		_, text := fetch(t, http.MethodGet, base+"/metrics", "")
		for _, want := range []string{
			`usher_calls_total{outcome="ok",server="math"} 1`, `usher_call_duration_seconds_count{server="math"} 1`,
			`usher_requests_modern_total 1`, `usher_store_up 1`, `usher_server_connections{server="math",state="connected"} 1`,
			`usher_dials_total 1`, `usher_build_info{version=`, `go_goroutines`, `process_open_fds`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s/metrics lacks %s", base, want)
			}
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, _ := fetch(t, http.MethodGet, s.metrics+path, ""); status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
	}
	if status, _ := fetch(t, http.MethodPost, s.metrics+"/mcp", "{}"); status != http.StatusNotFound {
		t.Errorf("the port of the metrics speaks MCP: %d", status)
	}
	for line := range strings.Lines(s.stop()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("a log line is no JSON: %s", line)
		}
	}
}

// Where clients need a token the metrics need one too, and one that may see all
// servers: they name each of them.
func TestMetricsAreNotForEverybody(t *testing.T) {
	s := serveHere(t, nil, nil, "--auth", "token")
	defer s.stop()
	if status, text := fetch(t, http.MethodGet, s.mcp+"/metrics", ""); status != http.StatusUnauthorized || strings.Contains(text, "usher_calls") {
		t.Errorf("%d %s", status, text)
	}
	for want, flags := range map[int][][]string{
		http.StatusOK:        {nil},
		http.StatusForbidden: {{"--servers", "none"}, {"--tools", "none/*"}, {"--profiles", "none"}, {"--principal", "ada"}},
	} {
		for _, f := range flags {
			var out bytes.Buffer
			args := append([]string{"token", "mint"}, f...)
			if code := Run(t.Context(), args, cmdutil.IO{In: strings.NewReader(""), Out: &out, Err: io.Discard, InTTY: true, ErrTTY: true, Width: 80, System: s.system}); code != cmdutil.ExitOK {
				t.Fatalf("%v: exit code %d", args, code)
			}
			status, text := fetch(t, http.MethodGet, s.mcp+"/metrics", "", "Authorization", "Bearer "+strings.TrimSpace(out.String()))
			if status != want || strings.Contains(text, "usher_upstream_requests_total") != (want == http.StatusOK) {
				t.Errorf("%v: %d %.200s", args, status, text)
			}
		}
	}
}
