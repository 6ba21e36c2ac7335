package http1

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// quietServer is an [http.Server] as a gateway has it.
func quietServer(h http.HandlerFunc) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		DisableGeneralOptionsHandler: true, ErrorLog: log.New(io.Discard, "", 0),
	}
}

// serving is a server that listens on the loopback until the test ends.
func serving(t *testing.T, s interface {
	Serve(net.Listener) error
	Close() error
},
) (addr string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serving ended with %v", err)
		}
	})
	return l.Addr().String()
}

// talk sends the parts one after the other, says that nothing will follow, and returns
// what was answered.
func talk(t *testing.T, addr string, parts ...string) []string {
	t.Helper()
	nc, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(20 * time.Second))
	go func() {
		for _, p := range parts {
			if _, err := io.WriteString(nc, p); err != nil {
				return // the server has enough
			}
		}
		_ = nc.(*net.TCPConn).CloseWrite()
	}()
	var all []string
	for r := bufio.NewReader(nc); ; {
		resp, err := http.ReadResponse(r, nil)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) {
			return all
		}
		if err != nil {
			t.Fatalf("after %d answers: %v", len(all), err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if errors.Is(err, syscall.ECONNRESET) {
			err = nil // whoever closes before everything was read ends in this way, or not
		}
		resp.Header.Del("Date")
		text := fmt.Sprintln(resp.Proto, resp.Status, resp.ContentLength, resp.TransferEncoding, resp.Close, err)
		head, _ := json.MarshalIndent(resp.Header, "", " ")
		all = append(all, text+string(head)+"\n"+string(body))
	}
}

// wantSame talks to both kinds of server and compares what they say. It returns the
// answers.
func wantSame(t *testing.T, h http.HandlerFunc, parts ...string) []string {
	t.Helper()
	want := talk(t, serving(t, quietServer(h)), parts...)
	got := talk(t, serving(t, New(quietServer(h))), parts...)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-net/http +ours\n%s", diff)
	}
	return got
}

// tells answers with everything that it sees of a request.
func tells(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	_, local := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	_, server := r.Context().Value(http.ServerContextKey).(*http.Server)
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"method": r.Method, "uri": r.RequestURI, "url": r.URL, "proto": r.Proto, "major": r.ProtoMajor, "minor": r.ProtoMinor,
		"host": r.Host, "header": r.Header, "length": r.ContentLength, "coding": r.TransferEncoding, "close": r.Close,
		"trailer": r.Trailer, "body": string(body), "err": fmt.Sprint(err), "remote": host, "local": local, "server": server,
		"tls": r.TLS, "form": r.Form,
	})
}

// requests are of all kinds, plain, odd and wrong.
var requests = map[string]string{
	"plain":                   "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
	"empty body":              "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
	"no length":               "POST /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"get":                     "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"delete with a body":      "DELETE /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx",
	"chunked":                 "POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
	"chunked and length":      "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
	"trailer":                 "POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n0\r\nX: y\r\n\r\n",
	"strange coding":          "POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
	"expects":                 "POST /mcp HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
	"expects too much":        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nExpect: tea\r\nContent-Length: 2\r\n\r\n{}",
	"1.0":                     "POST /mcp HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}",
	"1.0 keep-alive":          "POST /mcp HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n{}",
	"2.0":                     "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	"1.2":                     "POST /mcp HTTP/1.2\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
	"close":                   "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
	"keep-alive":              "POST /mcp HTTP/1.1\r\nHost: localhost\r\nconnection: Keep-Alive\r\nContent-Length: 2\r\n\r\n{}",
	"keep-alive and close":    "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
	"upgrade":                 "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 2\r\n\r\n{}",
	"query":                   "POST /mcp?a=b&c=%20d HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
	"escapes":                 "POST /servers/a%2Fb/mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
	"bad escape":              "POST /servers/%zz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
	"dots":                    "POST /a/../b//c HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
	"two slashes":             "POST //evil/mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
	"absolute":                "POST http://other/mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
	"star":                    "POST * HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
	"fragment":                "POST /mcp#x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
	"two spaces":              "POST  /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
	"lower method":            "post /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
	"not ASCII":               "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Name: müller\r\nContent-Length: 2\r\n\r\n{}",
	"not ASCII in the path":   "POST /müller HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
	"control in a value":      "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Name: a\x01b\r\nContent-Length: 2\r\n\r\n{}",
	"NUL in a value":          "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Name: a\x00b\r\nContent-Length: 2\r\n\r\n{}",
	"CR in a value":           "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Name: a\rb\r\nContent-Length: 2\r\n\r\n{}",
	"LF alone":                "POST /mcp HTTP/1.1\nHost: localhost\nContent-Length: 2\n\n{}",
	"LF alone inside":         "POST /mcp HTTP/1.1\r\nHost: localhost\nContent-Length: 2\r\n\r\n{}",
	"folded":                  "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Name: a\r\n b\r\nContent-Length: 2\r\n\r\n{}",
	"space before the colon":  "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Name : a\r\nContent-Length: 2\r\n\r\n{}",
	"no colon":                "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Name\r\nContent-Length: 2\r\n\r\n{}",
	"no name":                 "POST /mcp HTTP/1.1\r\nHost: localhost\r\n: a\r\nContent-Length: 2\r\n\r\n{}",
	"strange name":            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX!Y: a\r\nX_z: b\r\nContent-Length: 2\r\n\r\n{}",
	"spaces around":           "POST /mcp HTTP/1.1\r\nHost: \t localhost \t\r\nX-Name:a\t b \t\r\nX-None:\r\nContent-Length:\t2 \r\n\r\n{}",
	"names in all cases":      "POST /mcp HTTP/1.1\r\nhost: localhost\r\nMCP-PROTOCOL-version: 1\r\ncontent-length: 2\r\n\r\n{}",
	"the same name":           "POST /mcp HTTP/1.1\r\nHost: localhost\r\nA: 1\r\na: 2\r\nB: x\r\nA: 3\r\nContent-Length: 2\r\n\r\n{}",
	"no host":                 "POST /mcp HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
	"empty host":              "POST /mcp HTTP/1.1\r\nHost:\r\nContent-Length: 2\r\n\r\n{}",
	"two hosts":               "POST /mcp HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 2\r\n\r\n{}",
	"same host twice":         "POST /mcp HTTP/1.1\r\nHost: a\r\nhost: a\r\nContent-Length: 2\r\n\r\n{}",
	"host with port":          "POST /mcp HTTP/1.1\r\nHost: [::1]:80\r\nContent-Length: 2\r\n\r\n{}",
	"odd host":                "POST /mcp HTTP/1.1\r\nHost: a/b@c\r\nContent-Length: 2\r\n\r\n{}",
	"two lengths":             "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
	"same length twice":       "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
	"lengths in a list":       "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 2, 2\r\n\r\n{}",
	"length with a sign":      "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: +2\r\n\r\n{}",
	"negative length":         "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: -2\r\n\r\n{}",
	"length with zeros":       "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 002\r\n\r\n{}",
	"hexadecimal length":      "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 0x2\r\n\r\n{}",
	"huge length":             "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n{}",
	"no length said":          "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n{}",
	"body too short":          "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n{}",
	"more than the body":      "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}rest",
	"pragma":                  "POST /mcp HTTP/1.1\r\nHost: a\r\nPragma: no-cache\r\nContent-Length: 2\r\n\r\n{}",
	"te":                      "POST /mcp HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nContent-Length: 2\r\n\r\n{}",
	"half a head":             "POST /mcp HTTP/1.1\r\nHost: a\r\nConte",
	"nonsense":                "hello\r\n\r\n",
	"nothing":                 "",
	"lines before":            "\r\n\r\nPOST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}",
	"long header":             "POST /mcp HTTP/1.1\r\nHost: a\r\nX-Long: " + strings.Repeat("x", 10<<10) + "\r\nContent-Length: 2\r\n\r\n{}",
	"header too long":         "POST /mcp HTTP/1.1\r\nHost: a\r\nX-Long: " + strings.Repeat("x", 24<<10) + "\r\nContent-Length: 2\r\n\r\n{}",
	"long body":               "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("b", 100000),
	"very long body":          "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n" + strings.Repeat("b", 300000),
	"unusual header for both": "POST /mcp HTTP/1.1\r\nHost: a\r\nHTTP2-Settings: x\r\nProxy-Connection: close\r\nContent-Length: 2\r\n\r\n{}",
}

// Whatever a request looks like, alone, twice, or after and before a plain one, the
// handler sees the same as with net/http, and so does the agent.
func TestSameRequests(t *testing.T) {
	plain := requests["plain"]
	for name, text := range requests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantSame(t, tells, text)
			wantSame(t, tells, text, text)
			wantSame(t, tells, plain+text+plain)
			wantSame(t, tells, plain, plain, text, plain)
		})
	}
}

// A request may come in pieces, cut anywhere.
func TestSameInPieces(t *testing.T) {
	h := http.HandlerFunc(tells)
	theirs, ours := serving(t, quietServer(h)), serving(t, New(quietServer(h)))
	for _, name := range []string{"plain", "the same name", "chunked", "folded", "get"} {
		text := requests[name]
		want := talk(t, theirs, text)
		for i := range len(text) {
			if got := talk(t, ours, text[:i], text[i:]); !cmp.Equal(want, got) {
				t.Errorf("%s cut at %d:\n%s", name, i, cmp.Diff(want, got))
			}
		}
	}
}

// Requests on one connection that have most of their headers in common do not get
// those of each other.
func TestSameAfterOthers(t *testing.T) {
	var all []string
	for _, extra := range []string{"A: 1\r\nB: 2\r\n", "A: 1\r\n", "A: 2\r\nB: 2\r\n", "", "B: 2\r\nA: 1\r\n", "A: 1\r\nB: 2\r\nC: 3\r\n", "A: 1\r\n"} {
		all = append(all, "POST /mcp HTTP/1.1\r\nHost: a\r\n"+extra+"Content-Length: 2\r\n\r\n{}")
	}
	if got := wantSame(t, tells, all...); len(got) != len(all) {
		t.Errorf("%d answers", len(got))
	}
}
