package http1

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"
)

const plainRequest = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"

// Whatever a handler does, the agent sees the same as with net/http.
func TestSameResponses(t *testing.T) {
	long := bytes.Repeat([]byte("0123456789abcdef"), 4<<10)
	set := func(w http.ResponseWriter, pairs ...string) {
		for i := 0; i < len(pairs); i += 2 {
			w.Header().Add(pairs[i], pairs[i+1])
		}
	}
	handlers := map[string]func(w http.ResponseWriter, r *http.Request){
		"nothing":    func(http.ResponseWriter, *http.Request) {},
		"status":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) },
		"no content": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"not modified": func(w http.ResponseWriter, _ *http.Request) {
			set(w, "Etag", "x")
			w.WriteHeader(http.StatusNotModified)
		},
		"unknown status": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(599) },
		"no status":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(7) },
		"two statuses":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404); w.WriteHeader(200) },
		"http.Error":     func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) },
		"not found":      http.NotFound,
		"redirect":       func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/other", http.StatusSeeOther) },
		"short":          func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") },
		"html":           func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
		"no type": func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			_, _ = io.WriteString(w, "x")
		},
		"no date": func(w http.ResponseWriter, _ *http.Request) { w.Header()["Date"] = nil },
		"encoded": func(w http.ResponseWriter, _ *http.Request) {
			set(w, "Content-Encoding", "gzip")
			_, _ = w.Write([]byte("<html>"))
		},
		"up to the bound": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(long[:2048]) },
		"beyond it":       func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(long[:2049]) },
		"in two":          func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(long[:1500]); _, _ = w.Write(long[:1500]) },
		"long":            func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(long) },
		"long, twice":     func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(long); _, _ = w.Write(long) },
		"declared": func(w http.ResponseWriter, _ *http.Request) {
			set(w, "Content-Length", "65536", "Content-Type", "text/plain")
			_, _ = w.Write(long[:100])
			_, _ = w.Write(long[100:])
		},
		"declared, no type": func(w http.ResponseWriter, _ *http.Request) {
			set(w, "Content-Length", "6")
			_, _ = w.Write([]byte("<html>"))
		},
		"declared, nothing said": func(w http.ResponseWriter, _ *http.Request) { set(w, "Content-Length", "0") },
		"too much": func(w http.ResponseWriter, _ *http.Request) {
			set(w, "Content-Length", "3")
			_, _ = io.WriteString(w, "abc")
			if _, err := io.WriteString(w, "d"); !errors.Is(err, http.ErrContentLength) {
				panic(err)
			}
		},
		"body that must not be": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
			if _, err := io.WriteString(w, "x"); !errors.Is(err, http.ErrBodyNotAllowed) {
				panic(err)
			}
		},
		"flushed":        func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush(); _, _ = io.WriteString(w, "x") },
		"flushed before": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x"); w.(http.Flusher).Flush() },
		"flushed only":   func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() },
		"stream": func(w http.ResponseWriter, _ *http.Request) {
			set(w, "Content-Type", "text/event-stream")
			rc := http.NewResponseController(w)
			_ = rc.SetWriteDeadline(time.Now().Add(time.Minute))
			_ = rc.SetReadDeadline(time.Time{})
			for range 50 {
				_, _ = io.WriteString(w, "data: x\n\n")
				if err := rc.Flush(); err != nil {
					panic(err)
				}
			}
		},
		"header after": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(200)
			set(w, "X-Late", "x")
			_, _ = io.WriteString(w, "x")
		},
		"headers": func(w http.ResponseWriter, _ *http.Request) {
			set(w, "X-A", "1", "X-A", "2", "X-Empty", "", "X-Space", "  a ", "X-Break", "a\r\nSet-Cookie: b", "X-Uni", "ü")
			w.Header()["x-lower"] = []string{"l"}
			w.Header()["Bad Name"] = []string{"l"}
			w.Header()["Bad\r\nName"] = []string{"l"}
		},
		"closes": func(w http.ResponseWriter, _ *http.Request) {
			set(w, "Connection", "close")
			_, _ = io.WriteString(w, "x")
		},
		"aborts":      func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"panics":      func(http.ResponseWriter, *http.Request) { panic("oh") },
		"panics late": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(long[:1000]); panic("oh") },
		"reads twice": func(w http.ResponseWriter, r *http.Request) {
			a, _ := io.ReadAll(r.Body)
			b, err := io.ReadAll(r.Body)
			_ = r.Body.Close()
			_, _ = io.WriteString(w, string(a)+string(b))
			if err != nil {
				panic(err)
			}
		},
	}
	for name, h := range handlers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantSame(t, h, plainRequest)
			wantSame(t, h, plainRequest, plainRequest)
			wantSame(t, h, plainRequest+plainRequest+plainRequest)
			wantSame(t, h, strings.Replace(plainRequest, "2\r\n\r\n{}", "9000\r\n\r\n"+string(long[:9000]), 1)+plainRequest)
		})
	}
}

// An agent may say that nothing will follow while its first request is in flight, and
// be answered to all that it has sent.
func TestSameForWhoeverHasSaidEverything(t *testing.T) {
	h := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		<-r.Context().Done() // nobody waits for the answer, as far as one can tell
		_, _ = io.WriteString(w, r.URL.Path)
	}
	get := "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
	for _, text := range []string{plainRequest, plainRequest + plainRequest, plainRequest + get + plainRequest, plainRequest + "POST /half"} {
		wantSame(t, h, text)
	}
}

// Where a handler says more than it writes the connection is closed, so that nothing is
// taken for the rest.
func TestTooLittle(t *testing.T) {
	addr := serving(t, New(quietServer(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "5")
		_, _ = io.WriteString(w, "abc")
	})))
	if got := talk(t, addr, plainRequest+plainRequest); len(got) != 1 || !strings.Contains(got[0], "unexpected EOF") {
		t.Errorf("got %q", got)
	}
}

// What somebody writes who does not know that a request is over is not seen by anybody.
func TestWriteAfterTheEnd(t *testing.T) {
	var before http.ResponseWriter
	addr := serving(t, New(quietServer(func(w http.ResponseWriter, _ *http.Request) {
		if before != nil {
			before.WriteHeader(http.StatusTeapot)
			before.Header().Set("X-Stray", "x")
			if _, err := io.WriteString(before, "stray"); err == nil {
				t.Error("it was taken")
			}
			if err := http.NewResponseController(before).Flush(); err == nil {
				t.Error("flushed")
			}
			_ = http.NewResponseController(before).SetWriteDeadline(time.Unix(1, 0))
			_ = http.NewResponseController(before).SetReadDeadline(time.Unix(1, 0))
		}
		before = w
		_, _ = io.WriteString(w, "right")
	})))
	for _, got := range talk(t, addr, plainRequest+plainRequest+plainRequest) {
		if !strings.HasSuffix(got, "right") || strings.Contains(got, "tray") {
			t.Errorf("got %q", got)
		}
	}
}

// The body of a request that is over cannot be read, however late.
func TestBodyAfterTheEnd(t *testing.T) {
	var before io.Reader
	addr := serving(t, New(quietServer(func(_ http.ResponseWriter, r *http.Request) {
		if before != nil {
			if _, err := before.Read(make([]byte, 1)); !errors.Is(err, http.ErrBodyReadAfterClose) {
				t.Errorf("read: %v", err)
			}
			if _, whole := before.(*Body).Whole(); whole {
				t.Error("it is there")
			}
		}
		before = r.Body
	})))
	if got := talk(t, addr, plainRequest+plainRequest); len(got) != 2 {
		t.Errorf("got %q", got)
	}
}

// A reverse proxy works behind it as behind net/http: it reads the body elsewhere and
// writes in parts.
func TestSameProxy(t *testing.T) {
	addr := serving(t, quietServer(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		body, _ := io.ReadAll(r.Body)
		for range 10 {
			_, _ = w.Write(body)
			w.(http.Flusher).Flush()
		}
	}))
	to := &url.URL{Scheme: "http", Host: addr}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		FlushInterval: -1, Transport: &http.Transport{DisableKeepAlives: true},
	}
	ours := serving(t, New(quietServer(proxy.ServeHTTP)))
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for range 3 {
		resp, err := client.Post("http://"+ours, "text/plain", strings.NewReader(strings.Repeat("x", 20000)))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || len(body) != 200000 {
			t.Errorf("%s, %d bytes, %v", resp.Status, len(body), err)
		}
	}
}
