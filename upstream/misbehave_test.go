package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/upstream"
)

// The ways to reach a fake server.
var kinds = []string{"stdio/modern", "stdio/legacy", "http/modern", "http/legacy", "sse/legacy"}

// fakeTarget starts a fake server of one kind with the given switches.
func fakeTarget(t testing.TB, kind string, switches ...string) (config.Server, *fake.Ledger) {
	srv := config.Server{Name: "fake", MaxMessageBytes: 1 << 20}
	transport, era, _ := strings.Cut(kind, "/")
	versions := []string{mcp.LatestLegacy}
	if era == "modern" {
		versions = []string{mcp.Latest}
	}
	if transport == "stdio" {
		srv.Transport, srv.Command = config.TransportStdio, testSelf(t)
		srv.Args = []string{"child-fake", "--versions", versions[0], "--corpus"}
		for _, sw := range switches {
			srv.Args = append(srv.Args, "--switch", sw)
		}
		return srv, nil
	}
	s := fake.New(&fake.Options{Versions: versions, Switches: switches, Tools: append(fake.DefaultTools(), fake.CorpusTools()...)})
	h, tr := s.Handler(), config.TransportHTTP
	if transport == "sse" {
		h, tr = s.SSEHandler(), config.TransportSSE
	}
	hs := httptest.NewServer(h)
	t.Cleanup(hs.Close)
	t.Cleanup(s.Close)
	srv.Transport, srv.URL = tr, hs.URL
	return srv, s.Ledger()
}

// outcome names what a caller can tell from an error.
func outcome(err error) string {
	var we *mcp.Error
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &we):
		return "answered"
	case errors.Is(err, upstream.ErrTooLarge):
		return "toolarge"
	case errors.Is(err, upstream.ErrUnauthorized):
		return "unauthorized"
	case errors.Is(err, upstream.ErrRateLimited):
		return "ratelimited"
	case errors.Is(err, upstream.ErrTransport):
		if upstream.MaybeSent(err) {
			return "transport"
		}
		return "unsent"
	case errors.Is(err, upstream.ErrProtocol):
		return "protocol"
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline"
	}
	return "other: " + err.Error()
}

// expected says how a switch must end on each kind; "*" is the rest, "-" means
// that the switch has no effect there. Alternatives are separated by "|".
type expected map[string]string

var misbehaviours = map[string]expected{
	// Silence and death.
	"silent":            {"*": "deadline"},
	"silent-probe":      {"stdio/modern": "-", "http/modern": "-", "*": "ok"},
	"exit-on-probe":     {"stdio/modern": "-", "http/modern": "-", "*": "ok"},
	"exit-on-start":     {"stdio/modern": "transport|unsent", "stdio/legacy": "transport|unsent"},
	"crash-loop=0":      {"*": "transport|unsent|protocol"},
	"latency=20":        {"*": "ok"},
	"neverexit":         {"stdio/modern": "ok", "stdio/legacy": "ok"},
	"fork-child":        {"stdio/modern": "ok", "stdio/legacy": "ok"},
	"setsid-child":      {"stdio/modern": "ok", "stdio/legacy": "ok"},
	"stderrflood":       {"stdio/modern": "ok", "stdio/legacy": "ok"},
	"cancelled-ignored": {"*": "ok"},
	// Bytes of a frame.
	"garbage":       {"*": "ok"},
	"hugegarbage=8": {"stdio/modern": "ok", "stdio/legacy": "ok", "*": "ok|toolarge|protocol"},
	"bigline=8":     {"*": "toolarge"},
	"badutf8":       {"*": "protocol|deadline"},
	"deep":          {"*": "protocol|deadline"},
	"hugenumber":    {"*": "protocol|deadline"},
	"slowbyte=20":   {"sse/legacy": "-", "*": "deadline"},
	"halfclose":     {"sse/legacy": "-", "*": "transport"},
	// Answers.
	"wrongid":            {"stdio/modern": "deadline", "stdio/legacy": "deadline", "sse/legacy": "deadline", "*": "protocol"},
	"dup":                {"*": "ok"},
	"idtype":             {"stdio/modern": "deadline", "stdio/legacy": "deadline", "sse/legacy": "deadline", "*": "protocol"},
	"nullid-error":       {"http/modern": "answered", "http/legacy": "answered", "*": "deadline"},
	"unsolicited=999":    {"*": "ok"},
	"unsolicited=2000":   {"*": "protocol|ok"},
	"badversion":         {"*": "protocol|answered"},
	"noresulttype":       {"*": "ok"},
	"unknown-resulttype": {"*": "protocol"},
	"tasks-result":       {"*": "protocol"},
	"nullresult":         {"*": "ok"},
	"stateonly":          {"*": "ok"},
	"askforever":         {"*": "protocol"},
	"case-variant":       {"*": "protocol"},
	"duplicate-key":      {"*": "protocol"},
	"batch":              {"*": "ok"},
	"rpc-error":          {"*": "answered"},
	"crlf":               {"stdio/modern": "ok", "stdio/legacy": "ok"},
	"endless-progress":   {"*": "deadline"},
	// Lists: calls work, see TestListGuards.
	"loop":                           {"*": "ok"},
	"emptycursor":                    {"*": "ok"},
	"manypages=20":                   {"*": "ok"},
	"manytools=500":                  {"*": "ok"},
	"list-changed":                   {"*": "ok"},
	"schema-change":                  {"*": "ok"},
	"poison":                         {"*": "ok"},
	"invalid-header-tools":           {"*": "ok"},
	"remote-ref=http://127.0.0.1:9/": {"*": "ok"},
	"duplicate-tools":                {"*": "ok"},
	"lying-annotations":              {"*": "ok"},
	"quadratic-definition":           {"*": "ok"},
	"deep-definition":                {"*": "ok"},
	"huge-definition=512":            {"*": "ok"},
	"long-names=100":                 {"*": "ok"},
	"template-bomb=100":              {"*": "ok"},
	// Noise.
	"ping":               {"*": "ok"},
	"notification-flood": {"*": "ok"},
	"progress-flood":     {"*": "ok"},
	"wrong-token":        {"*": "ok"},
	"unknown-request":    {"*": "ok"},
	// Floods, see flood_test.go.
	"ping-flood=300":    {"*": "ok"},
	"ask-flood=300":     {"*": "ok"},
	"unknown-flood=300": {"*": "ok"},
	"change-flood=300":  {"*": "ok"},
	"deaf":              {"stdio/modern": "ok", "stdio/legacy": "ok"},
	"hold-answers":      {"http/modern": "-", "http/legacy": "ok", "sse/legacy": "ok"},
	"list-bomb=64":      {"*": "ok"},
	"big-session-id":    {"http/modern": "-", "http/legacy": "protocol"},
	// HTTP.
	"sse":                          {"http/modern": "ok", "http/legacy": "ok"},
	"event-ids":                    {"http/modern": "ok", "http/legacy": "ok"},
	"http-status=500":              {"http/modern": "protocol", "http/legacy": "protocol"},
	"http-status=503":              {"http/modern": "transport|unsent", "http/legacy": "transport|unsent"},
	"http-status=429":              {"http/modern": "ratelimited", "http/legacy": "ratelimited"},
	"http-status=403":              {"http/modern": "protocol", "http/legacy": "protocol"},
	"http-status=404":              {"http/modern": "protocol", "http/legacy": "protocol"},
	"retry-after":                  {"http/modern": "ok", "http/legacy": "ok"},
	"challenge":                    {"http/modern": "ok", "http/legacy": "ok"},
	"body":                         {"http/modern": "ok", "http/legacy": "ok"},
	"unauthorized":                 {"http/modern": "unauthorized", "http/legacy": "unauthorized", "sse/legacy": "unauthorized"},
	"redirect=http://[::1]:1/":     {"http/modern": "protocol", "http/legacy": "protocol"},
	"redirect-308=http://[::1]:1/": {"http/modern": "protocol", "http/legacy": "protocol"},
	"html":                         {"http/modern": "protocol", "http/legacy": "protocol"},
	"wrong-content-type":           {"http/modern": "protocol", "http/legacy": "protocol"},
	"truncated-json":               {"http/modern": "protocol", "http/legacy": "protocol"},
	"emptybody":                    {"http/modern": "protocol", "http/legacy": "protocol"},
	"gzip=8":                       {"http/modern": "toolarge|protocol", "http/legacy": "toolarge|protocol"},
	"session-lost":                 {"http/modern": "-", "http/legacy": "ok"},
	"no-session":                   {"http/modern": "-", "http/legacy": "ok"},
	"no-get":                       {"http/modern": "ok", "http/legacy": "ok"},
	"hang-after-headers":           {"http/modern": "deadline", "http/legacy": "deadline"},
	"sse-drop":                     {"http/modern": "transport", "http/legacy": "transport"},
	"sse-drop=ids":                 {"http/modern": "transport", "http/legacy": "ok"},
	"sse-multiline":                {"http/modern": "ok", "http/legacy": "ok"},
	"bigheader=2048":               {"http/modern": "transport", "http/legacy": "transport"},
	"drip":                         {"http/modern": "deadline", "http/legacy": "deadline"},
	"push-drop":                    {"http/legacy": "ok"},
	"endpoint=http://127.0.0.1:9/": {"sse/legacy": "protocol"},
	"no-endpoint":                  {"sse/legacy": "deadline"},
	"listen-drop":                  {"http/modern": "ok", "http/legacy": "ok"},
}

// TestMisbehaviours turns every switch of the fake on, one at a time, and wants
// the right kind of error within the deadline.
func TestMisbehaviours(t *testing.T) {
	for _, info := range fake.Switches() {
		if !slices.ContainsFunc(slices.Collect(keys(misbehaviours)), func(s string) bool { return name(s) == info.Name }) {
			t.Errorf("switch %q has no test", info.Name)
		}
	}
	for sw, want := range misbehaviours {
		for _, kind := range kinds {
			w, ok := want[kind]
			if !ok {
				w = want["*"]
			}
			if w == "" || w == "-" {
				continue
			}
			t.Run(name(sw)+"/"+kind, func(t *testing.T) {
				t.Parallel()
				began := time.Now()
				limit := 20 * time.Second
				if strings.Contains(w, "deadline") {
					limit = 700 * time.Millisecond
				}
				err := converse(t, kind, sw, limit)
				if got := outcome(err); !slices.Contains(strings.Split(w, "|"), got) {
					t.Errorf("%s: %s (%v), want %s", sw, got, err, w)
				}
				if d := time.Since(began); d > 45*time.Second {
					t.Errorf("%s: took %s", sw, d)
				}
			})
		}
	}
}

func name(sw string) string { n, _, _ := strings.Cut(sw, "="); return n }

func keys(m map[string]expected) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// dialLimit is short only for the server that says nothing at all, and long enough to
// start it on a busy machine.
func dialLimit(sw string, limit time.Duration) time.Duration {
	if sw == "silent" || sw == "no-endpoint" {
		return 4 * limit
	}
	return 20 * time.Second
}

// converse connects, calls echo and returns the first error.
func converse(t *testing.T, kind, sw string, limit time.Duration) error {
	srv, _ := fakeTarget(t, kind, sw)
	ctx, cancel := context.WithTimeout(t.Context(), dialLimit(sw, limit))
	defer cancel()
	c, err := upstream.Dial(ctx, &srv, &upstream.Options{
		ProbeTimeout: 300 * time.Millisecond, Executable: testSelf(t), Grace: 100 * time.Millisecond, Kill: 150 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	if mcp.Stateless(c.Version()) != strings.HasSuffix(kind, "modern") {
		return fmt.Errorf("negotiated %s", c.Version())
	}
	callCtx, stop := context.WithTimeout(t.Context(), limit)
	defer stop()
	req := mcp.Request{
		Method: mcp.MethodToolsCall, Params: []byte(`{"name":"echo","arguments":{"k":"v"},"_meta":{"progressToken":7}}`),
		OnNotification: func(mcp.Message) {},
	}
	result, err := c.Call(callCtx, req, func(context.Context, string, []byte) ([]byte, *mcp.Error) { return upstream.DeclineForm(), nil })
	if err == nil && string(result) != "null" && !strings.Contains(string(result), `"k":"v"`) {
		return fmt.Errorf("echo answered %.200s", result)
	}
	return err
}
