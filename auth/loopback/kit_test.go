package loopback

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/usher-mcp/usher/internal/fake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fetch makes one request to a listener and returns status, header and page.
func fetch(t *testing.T, method, address string, header map[string]string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range header {
		if k == "Host" {
			req.Host = v
		}
		req.Header.Set(k, v)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(body)
}

// checkFixedPage checks what must hold for every page, whatever was asked.
func checkFixedPage(t *testing.T, name string, h http.Header, body string) {
	t.Helper()
	for key, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
		"Referrer-Policy": "no-referrer", "Content-Type": "text/html; charset=utf-8",
	} {
		if !strings.Contains(h.Get(key), want) {
			t.Errorf("%s: %s is %q", name, key, h.Get(key))
		}
	}
	if h.Get("Location") != "" {
		t.Errorf("%s: redirects to %s", name, h.Get("Location"))
	}
	if len(fake.Secrets([]byte(body))) > 0 {
		t.Errorf("%s: the page holds a secret", name)
	}
	for _, bad := range []string{"<script", "<img", "onerror", "hostile", "http://", "https://", "src=", "href="} {
		if strings.Contains(strings.ToLower(body), bad) {
			t.Errorf("%s: the page holds %q:\n%s", name, bad, body)
		}
	}
}
