package cli

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
)

// servingConsole runs usher serve --http and returns the link to its console, and what ends
// it and waits.
func servingConsole(t *testing.T, args ...string) (link string, end func() int) {
	t.Helper()
	home := t.TempDir()
	where, stop, err := fake.New(&fake.Options{Name: "math"}).Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	text := `{"mcpServers": {"math": {"url": "` + where + `/mcp"}}, "usher": {"gateway": {"drainTimeout": "1m"}, "key": "file:` + filepath.Join(home, "key") + `"}}`
	if err := os.WriteFile(filepath.Join(home, "mcp.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	sys := config.System{Home: home, Workdir: home, LookupEnv: func(name string) (string, bool) { return home, name == "USHER_HOME" }}
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- Run(ctx, append([]string{"serve"}, args...), cmdutil.IO{In: strings.NewReader(""), Out: io.Discard, Err: w, InTTY: true, ErrTTY: true, Width: 80, System: sys})
		_ = w.Close()
	}()
	links := make(chan string, 1)
	go func() {
		find := regexp.MustCompile(`^console (http://\S+/\?once=\S+)`)
		for lines := bufio.NewScanner(r); lines.Scan(); {
			if m := find.FindStringSubmatch(lines.Text()); m != nil {
				links <- m[1]
			}
		}
		close(links)
	}()
	link, ok := <-links
	if !ok {
		t.Fatalf("no link was printed; usher ended with code %d", <-code)
	}
	return link, func() int {
		cancel()
		return <-code
	}
}

// The console beside a gateway: the link of the start opens it, a tool can be tried,
// agents are served as before, and an open page does not hold up the end.
func TestServeConsole(t *testing.T) {
	for name, listen := range map[string][]string{
		"loopback":   {"--http", "127.0.0.1:0"},
		"everywhere": {"--http", "0.0.0.0:0", "--auth", "token"},
	} {
		t.Run(name, func(t *testing.T) {
			link, end := servingConsole(t, listen...)
			jar, err := cookiejar.New(nil)
			if err != nil {
				t.Fatal(err)
			}
			client := &http.Client{Jar: jar, Transport: &http.Transport{}}
			t.Cleanup(client.CloseIdleConnections)
			page := get(t, client, link, nil)
			if !strings.Contains(page, "Overview") || !strings.Contains(page, `data-server="math"`) {
				t.Fatalf("the page: %s", page)
			}
			base, _, _ := strings.Cut(link, "/?")
			token := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(page)[1]
			form := func(path string, values ...string) string {
				v := url.Values{"csrf": {token}}
				for i := 0; i < len(values); i += 2 {
					v.Set(values[i], values[i+1])
				}
				return get(t, client, base+path, strings.NewReader(v.Encode()))
			}
			if got := form("/console/list", "server", "math"); !strings.Contains(got, `data-tool="math/add"`) {
				t.Errorf("its tools: %s", got)
			}
			form("/console/call", "server", "math", "tool", "add", "arg.a", "1", "arg.b", "2")
			seen := false
			for tries := 0; !seen && tries < 5000; tries++ { // the call may be in flight yet
				seen = strings.Contains(get(t, client, base+"/console/calls", nil), "a: number, b: number")
			}
			if !seen {
				t.Error("the call is not shown")
			}
			stream := open(t, client, base+"/console/events?at=/", nil)
			if _, err := stream.Body.Read(make([]byte, 16)); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if code := end(); code != 0 || time.Since(began) > time.Minute/2 {
				t.Errorf("with a page open it ended with code %d after %s", code, time.Since(began))
			}
			_ = stream.Body.Close()
		})
	}
}

// A provider's page leads the browser to the callback, so the request says that it
// comes from another site. It is for the state to decide, not for the origin.
func TestServeCallback(t *testing.T) {
	link, end := servingConsole(t, "--http", "127.0.0.1:0")
	defer end()
	base, _, _ := strings.Cut(link, "/?")
	for host, want := range map[string]bool{"": true, "evil.example": false} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/oauth/callback?state=unknown&code=x", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"} {
			req.Header.Set(name, value)
		}
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if reached := resp.StatusCode != http.StatusForbidden && resp.StatusCode != http.StatusMisdirectedRequest; reached != want {
			t.Errorf("host %q: HTTP %d", host, resp.StatusCode)
		}
	}
}

// open makes a request as a page of the console does; with a body it sends a form.
func open(t *testing.T, client *http.Client, address string, form io.Reader) *http.Response {
	t.Helper()
	method := http.MethodGet
	if form != nil {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(t.Context(), method, address, form)
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", req.URL.Scheme+"://"+req.URL.Host)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func get(t *testing.T, client *http.Client, address string, form io.Reader) string {
	t.Helper()
	resp := open(t, client, address, form)
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return string(text)
}
