package http1

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener for connections within the program.
type pipes struct {
	conns chan net.Conn
	fails chan error
	done  chan struct{}
}

func newPipes() *pipes {
	return &pipes{make(chan net.Conn), make(chan error), make(chan struct{})}
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case err := <-l.fails:
		return nil, err
	case <-l.done:
		return nil, net.ErrClosed
	}
}
func (l *pipes) Close() error   { close(l.done); return nil }
func (l *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (l *pipes) dial() net.Conn {
	ours, theirs := net.Pipe()
	l.conns <- theirs
	return ours
}

// bubble runs f beside a server, in a bubble.
func bubble(t *testing.T, h http.HandlerFunc, f func(t *testing.T, l *pipes, s *Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l, s := newPipes(), New(quietServer(h))
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(l) }()
		f(t, l, s)
		_ = s.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serving ended with %v", err)
		}
	})
}

// pass lets time go by, in a bubble.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// agent sends and reads as far as a test wants to.
type agent struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func (l *pipes) agent(t *testing.T) *agent {
	c := l.dial()
	return &agent{t, c, bufio.NewReader(c)}
}

func (a *agent) send(text string) {
	a.t.Helper()
	if _, err := io.WriteString(a, text); err != nil {
		a.t.Fatal(err)
	}
}

func (a *agent) answer() (*http.Response, string) {
	a.t.Helper()
	resp, err := http.ReadResponse(a.r, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		a.t.Fatal(err)
	}
	return resp, string(body)
}

// closedAfter tells when the server closes the connection without another word.
func (a *agent) closedAfter() time.Duration {
	a.t.Helper()
	began := time.Now()
	if n, err := a.r.ReadByte(); err == nil {
		a.t.Fatalf("it says %q", n)
	}
	return time.Since(began)
}

func answers(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

// Nobody holds a connection for longer than they may.
func TestBounds(t *testing.T) {
	tests := []struct {
		name     string
		talk     func(a *agent)
		from, to time.Duration
	}{
		{"silent", func(*agent) {}, 5 * time.Second, 5 * time.Second},
		{"slow at the beginning", func(a *agent) { pass(4 * time.Second); a.send("POST /") }, 5 * time.Second, 5 * time.Second},
		{"idle", func(a *agent) { a.send(plainRequest); a.answer() }, 2 * time.Minute, 3 * time.Minute},
		{"idle again", func(a *agent) {
			for range 20 {
				pass(100 * time.Second)
				a.send(plainRequest)
				a.answer()
			}
		}, 2 * time.Minute, 3 * time.Minute},
		{"slow after a request", func(a *agent) {
			a.send(plainRequest)
			a.answer()
			pass(time.Minute)
			a.send("POST /m")
		}, 5 * time.Second, 5 * time.Second},
		{"a byte at a time", func(a *agent) {
			go func() {
				for err := error(nil); err == nil; _, err = io.WriteString(a, "P") {
					<-time.After(time.Second)
				}
			}()
		}, 5 * time.Second, 7 * time.Second},
		{"a body that does not come and nobody wants", func(a *agent) {
			a.send("POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc")
			a.answer()
		}, 5 * time.Second, 5 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, answers("ok"), func(t *testing.T, l *pipes, _ *Server) {
				a := l.agent(t)
				if tt.name == "idle again" { // the first one has to come at once
					a.send(plainRequest)
					a.answer()
				}
				tt.talk(a)
				if got := a.closedAfter(); got < tt.from || got > tt.to {
					t.Errorf("closed after %v, want %v to %v", got, tt.from, tt.to)
				}
				pass(2 * time.Second) // whoever still sends notices
			})
		})
	}
}

// A handler that takes its time, for the answer or for reading, is not disturbed by the
// bounds of a connection without a request.
func TestPatience(t *testing.T) {
	h := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		pass(time.Hour)
		if err != nil || r.Context().Err() != nil {
			t.Errorf("body %v, context %v", err, r.Context().Err())
		}
		_, _ = w.Write(body)
	}
	bubble(t, h, func(t *testing.T, l *pipes, _ *Server) {
		a := l.agent(t)
		for range 3 {
			a.send("POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc")
			pass(time.Minute)
			a.send("def")
			pass(time.Minute)
			a.send("ghi")
			if _, body := a.answer(); body != "abcdefghi" {
				t.Errorf("answered %q", body)
			}
		}
	})
}

// A handler's bound for reading the body holds.
func TestReadDeadline(t *testing.T) {
	took := make(chan time.Duration, 1)
	h := func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		_ = http.NewResponseController(w).SetReadDeadline(began.Add(30 * time.Second))
		_, err := io.ReadAll(r.Body)
		took <- time.Since(began)
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
	bubble(t, h, func(t *testing.T, l *pipes, _ *Server) {
		a := l.agent(t)
		a.send("POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc")
		if resp, _ := a.answer(); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("answered %s", resp.Status)
		}
		if got := <-took; got != 30*time.Second {
			t.Errorf("read for %v", got)
		}
		if got := a.closedAfter(); got != 0 {
			t.Errorf("closed after %v", got)
		}
	})
}

// An agent that leaves ends its request: at the first look, later, or when the body was
// read in parts. What is written to it afterwards fails.
func TestLeaving(t *testing.T) {
	for _, after := range []time.Duration{time.Millisecond, lookAfter, time.Hour} {
		for _, parts := range [][]string{{plainRequest}, {plainRequest[:len(plainRequest)-1], "}"}} {
			var ended chan time.Duration // of the bubble
			h := func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.ReadAll(r.Body)
				began := time.Now()
				<-r.Context().Done()
				ended <- time.Since(began)
				_, _ = io.WriteString(w, "x")
				if err := http.NewResponseController(w).Flush(); err == nil {
					t.Error("somebody heard it")
				}
			}
			bubble(t, h, func(t *testing.T, l *pipes, _ *Server) {
				ended = make(chan time.Duration, 1)
				a := l.agent(t)
				for _, p := range parts {
					a.send(p)
				}
				pass(after)
				_ = a.Close()
				if got := <-ended; got != max(after, lookAfter) {
					t.Errorf("left after %v, noticed after %v", after, got)
				}
			})
		}
	}
}

// Whoever writes to an agent that has left knows at once that nobody waits.
func TestWritingToNobody(t *testing.T) {
	bubble(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "x")
		if err := http.NewResponseController(w).Flush(); err == nil || r.Context().Err() == nil {
			t.Errorf("flushed with %v, the context has ended with %v", err, r.Context().Err())
		}
	}, func(t *testing.T, l *pipes, _ *Server) {
		a := l.agent(t)
		a.send(plainRequest)
		_ = a.Close()
		synctest.Wait()
	})
}

// What an agent sends before it has its answer is its next request, and nothing of it is
// lost to whoever looked whether it is still there.
func TestPipelined(t *testing.T) {
	for _, early := range []time.Duration{time.Millisecond, 2 * lookAfter} {
		h := func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				pass(time.Second)
			}
			_, _ = io.WriteString(w, r.URL.Path)
		}
		bubble(t, h, func(t *testing.T, l *pipes, _ *Server) {
			a := l.agent(t)
			for range 3 {
				a.send(slowRequest)
				<-time.After(early)
				sent := make(chan error, 1)
				go func() {
					_, err := io.WriteString(a, plainRequest)
					sent <- err
				}()
				_, first := a.answer()
				_, second := a.answer()
				if err := <-sent; err != nil || first != "/slow" || second != "/mcp" {
					t.Errorf("answered %q, then %q; sent: %v", first, second, err)
				}
			}
		})
	}
}

// A request that is quick has no goroutine that waits for its agent to leave.
func TestQuickIsNotWatched(t *testing.T) {
	h := func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			pass(2 * lookAfter)
		}
		synctest.Wait()
		stacks := make([]byte, 1<<20)
		all := string(stacks[:runtime.Stack(stacks, true)])
		if looks := strings.Contains(all, "(*conn).look"); looks != (r.URL.Path == "/slow") {
			t.Errorf("%s; looks: %v", r.URL.Path, looks)
		}
	}
	bubble(t, h, func(t *testing.T, l *pipes, _ *Server) {
		a := l.agent(t)
		for _, text := range []string{plainRequest, slowRequest, plainRequest, plainRequest} {
			a.send(text)
			a.answer()
		}
	})
}

// A request that is over has no context to speak of, and neither has one that cannot be
// answered.
func TestContextEnds(t *testing.T) {
	contexts := make(chan context.Context, 2)
	h := func(w http.ResponseWriter, r *http.Request) {
		contexts <- r.Context()
		_, _ = io.WriteString(w, "x")
	}
	bubble(t, h, func(t *testing.T, l *pipes, _ *Server) {
		a := l.agent(t)
		a.send(plainRequest)
		a.answer()
		synctest.Wait()
		if ctx := <-contexts; ctx.Err() == nil {
			t.Error("the context has not ended with the request")
		}
	})
}
