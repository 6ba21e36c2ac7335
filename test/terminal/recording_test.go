package terminal

import (
	"encoding/xml"
	"errors"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/test/need"
)

// TestRecording makes the moving picture of the documents from the program itself.
// With USHER_SCREENSHOTS=1 it is written.
func TestRecording(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two, shut := w.as(), w.as(), w.as("register-status=403")
	for name, as := range map[string]*fake.AuthServer{"figma": shut, "linear": one, "notion": two, "sentry": one} {
		w.add(name, as)
	}
	const columns, rows = 92, 11
	s := w.open(columns, rows, "clear; printf '$ usher login --missing\\n'; BROWSER=true usher login --missing")
	frames := []Frame{{"$ usher login --missing", time.Second}}
	see := func(hold time.Duration, texts ...string) {
		t.Helper()
		s.Await(func(screen string) string {
			for _, text := range texts {
				if !strings.Contains(screen, text) {
					return text
				}
			}
			return ""
		})
		frames = append(frames, Frame{presentable(s.Coloured()), hold})
	}
	see(2*time.Second, "one page for all", "linear  … waiting", "notion  … waiting", "sentry  … waiting", "figma   ✖", "paste>")
	// The person consents on the page, which is looked at in test/browser.
	pages := consentPages(t, "http://"+onceLink.FindString(s.Joined()))
	for _, step := range []struct {
		name string
		as   *fake.AuthServer
	}{{"notion", two}, {"linear", one}, {"sentry", one}} {
		if err := visit(t.Context(), landing(t, step.as, pages[step.name])); err != nil {
			t.Fatal(err)
		}
		if step.name != "sentry" {
			see(1200*time.Millisecond, step.name+"  ✔ connected")
		}
	}
	see(4*time.Second, "3 logged in, 0 skipped, 1 failed, 0 waiting", "exit code 1")
	picture := SVG(columns, rows, frames)
	wellFormed(t, picture)
	for _, text := range []string{"usher login --missing", `<tspan class="g">✔ connected</tspan>`, "next: usher doctor figma"} {
		if !strings.Contains(picture, text) {
			t.Errorf("the picture does not show %q", text)
		}
	}
	if os.Getenv("USHER_SCREENSHOTS") != "1" {
		return
	}
	root, err := need.Root()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "docs", "img", "login.svg"), []byte(picture), 0o644); err != nil {
		t.Fatal(err)
	}
}

var (
	onceLink = regexp.MustCompile(`127\.0\.0\.1:\d+/connect\?once=\w+`)
	exitLine = regexp.MustCompile(`(?m)^exit code.*\n?`)
	somePort = regexp.MustCompile(`127\.0\.0\.1:\d+`)
)

var consentLink = regexp.MustCompile(`href="([^"]+)"[^>]*>Connect (\w+)</a>`)

// consentPages opens the page that lists the logins, and returns where each leads.
func consentPages(t *testing.T, link string) map[string]string {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}).Get(link)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, m := range consentLink.FindAllStringSubmatch(string(text), -1) {
		found[m[2]] = html.UnescapeString(m[1])
	}
	return found
}

// presentable leaves out what is of this machine and of this moment.
func presentable(screen string) string {
	screen = onceLink.ReplaceAllString(screen, "PAGE")
	screen = exitLine.ReplaceAllString(screen, "")
	screen = somePort.ReplaceAllString(screen, "figma.example")
	return strings.ReplaceAll(screen, "PAGE", "127.0.0.1:7331/connect?once=…")
}

func wellFormed(t *testing.T, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("the picture is not XML: %v", err)
		}
	}
}

func TestSpans(t *testing.T) {
	for line, want := range map[string]string{
		"":                                "",
		"plain <&>":                       "plain &lt;&amp;&gt;",
		"a \x1b[32m✔ ok\x1b[39m b":        `a <tspan class="g">✔ ok</tspan> b`,
		"\x1b[2m\x1b[33mx\x1b[0m":         `<tspan class="y">x</tspan>`,
		"\x1b[1;31mx":                     `<tspan class="r">x</tspan>`,
		"\x1b[38;5;7mx\x1b[m\x1b[2my\x1b": `x<tspan class="d">y` + "\uFFFD" + `</tspan>`,
	} {
		if got := spans(line); got != want {
			t.Errorf("spans(%q) = %s, want %s", line, got, want)
		}
	}
}
