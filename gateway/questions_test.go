package gateway

import (
	"bytes"
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/gateway/internal/stream"
	"github.com/usher-mcp/usher/gateway/internal/suspend"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/surface"
)

// curious is a view whose server asks n questions side by side during a call, and then
// reports how many were refused. A connection to a server bounds its goroutines
// itself; here each question has one.
func curious(n int, params []byte, refused chan<- int) *script {
	return &script{do: func(ctx context.Context, _ surface.Agent, r mcp.Request) ([]byte, error) {
		bad := make(chan *mcp.Error, n)
		for range n {
			go func() {
				_, no := r.OnRequest(ctx, mcp.MethodElicit, params)
				bad <- no
			}()
		}
		count := 0
		for range n {
			if no := <-bad; no != nil {
				count++
			}
		}
		refused <- count
		return []byte(`{"content":[]}`), nil
	}}
}

// answersTo answers all questions of an input_required result.
func answersTo(t *testing.T, suspended []byte) (more string, n int) {
	t.Helper()
	requests, state := member(suspended, "inputRequests"), member(suspended, "requestState")
	out := ""
	for m := jsonx.Object(requests); m.Next(); n++ {
		out += `,"` + string(m.Key) + `":{"v":"1"}`
	}
	if n == 0 {
		t.Fatalf("no questions in %.300s", suspended)
	}
	return `,"inputResponses":{` + out[1:] + `},"requestState":` + string(state), n
}

// A server that asks without end holds a few questions; the others are refused.
func TestQuestionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const asked = 2000
		refused := make(chan int, 1)
		g := New(curious(asked, []byte(`{"message":"m"}`), refused), nil)
		defer g.Close()
		before := runtime.NumGoroutine()
		first := result(t, callTool(t, g.Handler(), "x", ""))
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n > limit.CallQuestions+4 {
			t.Errorf("%d goroutines wait", n)
		}
		more, n := answersTo(t, first)
		if n != limit.CallQuestions {
			t.Errorf("%d questions were passed on", n)
		}
		callTool(t, g.Handler(), "x", more)
		if n := <-refused; n != asked-limit.CallQuestions {
			t.Errorf("%d of %d were refused", n, asked)
		}
		if g.held.Size() != 0 {
			t.Errorf("%d bytes are still held", g.held.Size())
		}
	})
}

// A server that asks one question after the other is stopped.
func TestQuestionsOfACallAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		view := &script{do: func(ctx context.Context, _ surface.Agent, r mcp.Request) ([]byte, error) {
			for {
				if _, bad := r.OnRequest(ctx, mcp.MethodElicit, []byte(`{"message":"m"}`)); bad != nil {
					return nil, bad
				}
			}
		}}
		g := New(view, nil)
		defer g.Close()
		got := callTool(t, g.Handler(), "x", "")
		rounds := 0
		for ; errorCode(got) == 0 && rounds < 2*limit.CallQuestionsTotal; rounds++ {
			more, _ := answersTo(t, result(t, got))
			got = callTool(t, g.Handler(), "x", more)
		}
		if rounds != limit.CallQuestionsTotal {
			t.Errorf("stopped after %d questions with %s", rounds, got)
		}
	})
}

// Unanswered questions are bounded in bytes, too, and the rest of a message is not held.
func TestQuestionBytesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := make(chan int, 1)
		large := append(append([]byte(`{"message":"`), bytes.Repeat([]byte("m"), limit.CallQuestionBytes/4)...), `"}`...)
		g := New(curious(10, large, refused), nil)
		defer g.Close()
		first := result(t, callTool(t, g.Handler(), "x", ""))
		if n := g.held.Size(); n > limit.CallQuestionBytes || n == 0 {
			t.Errorf("%d bytes are held", n)
		}
		more, _ := answersTo(t, first)
		callTool(t, g.Handler(), "x", more)
		if n := <-refused; n != 7 {
			t.Errorf("%d of 10 were refused", n)
		}
	})
}

// A call that is suspended again and again ends some time.
func TestSuspendedCallEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		view := &script{do: func(ctx context.Context, _ surface.Agent, r mcp.Request) ([]byte, error) {
			for {
				if _, bad := r.OnRequest(ctx, mcp.MethodElicit, []byte(`{"message":"m"}`)); bad != nil {
					ended <- bad
					return nil, bad
				}
			}
		}}
		g := New(view, nil)
		defer g.Close()
		begun := time.Now()
		got := callTool(t, g.Handler(), "x", "")
		for errorCode(got) == 0 && time.Since(begun) < 2*limit.CallLifetime {
			time.Sleep(9 * time.Minute)
			more, _ := answersTo(t, result(t, got))
			got = callTool(t, g.Handler(), "x", more)
		}
		if d := time.Since(begun); d < limit.CallLifetime || d > limit.CallLifetime+9*time.Minute {
			t.Errorf("it went on for %s", d)
		}
		if err := <-ended; !strings.Contains(err.Error(), suspend.ErrExpired.Error()) {
			t.Errorf("the server was told %v", err)
		}
	})
}

// A legacy session holds a bounded number of questions.
func TestSessionQuestionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(&script{}, nil)
		defer g.Close()
		s := g.newSession(authn.Identity{Principal: authn.LocalPrincipal}, &endpoint{key: "/mcp", view: &script{}}, stream.NewQueue(nil, ""), []byte(`{"capabilities":{"roots":{}}}`))
		ctx, cancel := context.WithCancel(t.Context())
		refused := make(chan *mcp.Error, 10*limit.SessionQuestions)
		for range 10 * limit.SessionQuestions {
			go func() {
				_, bad := s.ask(ctx, s.out, mcp.MethodRoots, nil)
				refused <- bad
			}()
		}
		synctest.Wait()
		if n := len(refused); n != 9*limit.SessionQuestions {
			t.Errorf("%d were refused", n)
		}
		cancel()
		s.close(errEnded)
		synctest.Wait()
		if len(s.asked) != 0 {
			t.Errorf("%d are still held", len(s.asked))
		}
	})
}
