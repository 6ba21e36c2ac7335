package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/vault"
)

// flood is a hostile far side: it says hello and then as many lines as it is asked for.
type flood struct {
	line  func(i int) string
	lines int

	next int
	rest string
	read int64
}

func (f *flood) Read(p []byte) (int, error) {
	if f.rest == "" {
		if f.next == f.lines {
			return 0, io.EOF
		}
		f.rest = f.line(f.next) + "\n"
		f.next++
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	f.read += int64(n)
	return n, nil
}

func rowLine(server, state, detail string) string {
	return fmt.Sprintf(`%s{"kind":"row","row":{"server":%q,"phase":"awaiting_consent","detail":%q,"login":{"state":%q}}}`, fromRemote, server, detail, state)
}

// Whatever a hostile remote machine sends ends the forwarding with an error before it
// costs memory.
func TestHostileRemote(t *testing.T) {
	big, blank := strings.Repeat("x", 100<<10), strings.Repeat(" ", 10<<10)
	for name, f := range map[string]*flood{
		"states":   {lines: 100 * limit.ForwardStates, line: func(i int) string { return rowLine("a", fmt.Sprint("s", i), "") }},
		"accounts": {lines: 100 * limit.ForwardAccounts, line: func(i int) string { return rowLine(fmt.Sprint("a", i), "s", "") }},
		"messages": {lines: 10 * limit.ForwardMessages, line: func(int) string { return fromRemote + `{"kind":"prepared"}` }},
		"answers":  {lines: 10 * limit.ForwardMessages, line: func(int) string { return fromRemote + `{"kind":"answered","answered":{"state":"s"}}` }},
		"unknown":  {lines: 10 * limit.ForwardMessages, line: func(int) string { return fromRemote + `{"kind":"weather"}` }},
		"large":    {lines: 1000, line: func(i int) string { return rowLine(fmt.Sprint("a", i%100), "s", big) }},
		"message":  {lines: 2, line: func(int) string { return rowLine("a", "s", strings.Repeat("x", limit.ForwardMessageBytes)) }},
		"noise":    {lines: 1000, line: func(int) string { return big }},
		"blanks":   {lines: 4 * limit.ForwardBytes, line: func(int) string { return blank }},
	} {
		t.Run(name, func(t *testing.T) {
			heard := 0
			n := NewLocal(f, io.Discard, func(string) { heard++ })
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			err := n.Run(func(bulk.Row) {}, nil)
			if !errors.Is(err, ErrMalformed) {
				t.Errorf("it ended with %v after %d lines, want %v", err, f.next, ErrMalformed)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 2*limit.ForwardBytes {
				t.Errorf("%d bytes are kept", grown)
			}
			if heard > limit.ForwardNoise || f.read > 2*limit.ForwardBytes || len(n.Rows()) > limit.ForwardAccounts || len(n.known) > limit.ForwardStates {
				t.Errorf("%d lines of noise, %d bytes read, %d accounts, %d states", heard, f.read, len(n.Rows()), len(n.known))
			}
			runtime.KeepAlive(n)
		})
	}
}

// The same before the remote machine says hello.
func TestHostileHello(t *testing.T) {
	for name, line := range map[string]string{"messages": fromRemote + `{"kind":"prepared"}`, "noise": strings.Repeat("x", 100<<10)} {
		f := &flood{lines: 10 * limit.ForwardMessages, line: func(int) string { return line }}
		if _, err := NewLocal(f, io.Discard, nil).Hello("v1"); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v, want %v", name, err, ErrMalformed)
		}
	}
}

// Browsers that wait for a verdict are bounded, and one that leaves is forgotten.
func TestWaitingBrowsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewLocal(strings.NewReader(""), io.Discard, nil)
		if _, err := n.take(row{Event: bulk.Event{Server: "a", Phase: bulk.PhaseAwaiting}, Login: &login{State: "s"}}); err != nil {
			t.Fatal(err)
		}
		cb := auth.Callback{State: "s", Code: vault.NewSecret("c")}
		for range 100 {
			ctx, leave := context.WithCancel(t.Context())
			leave()
			_ = n.Answer(ctx, cb)
		}
		if got := len(n.known["s"].waiting); got != 0 {
			t.Errorf("%d browsers that left are kept", got)
		}
		var browsers sync.WaitGroup
		for range limit.ForwardWaiting {
			browsers.Go(func() { _ = n.Answer(t.Context(), cb) })
		}
		synctest.Wait()
		if err := n.Answer(t.Context(), cb); !errors.Is(err, auth.ErrBeingCompleted) {
			t.Errorf("one browser too many: %v", err)
		}
		n.hangUp()
		browsers.Wait()
	})
}

// A near side that sends many answers gets no goroutine for each of them.
func TestAnswersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := make(chan struct{}, limit.ForwardAnswers)
		var answers sync.WaitGroup
		inbox, over, stop := make(chan message), make(chan struct{}), make(chan struct{})
		running, most := 0, 0
		var mu sync.Mutex
		k := &talk{inbox: inbox, slots: slots, trade: func(context.Context, answer) {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			<-stop
			mu.Lock()
			running--
			mu.Unlock()
		}}
		ended := make(chan error, 1)
		go func() { ended <- k.listen(t.Context(), over, &answers) }()
		go func() {
			for range 10 * limit.ForwardAnswers {
				inbox <- message{Kind: kindAnswer, Answer: &answer{}}
			}
			close(over)
		}()
		synctest.Wait()
		mu.Lock()
		if running != limit.ForwardAnswers {
			t.Errorf("%d answers at once, want %d", running, limit.ForwardAnswers)
		}
		mu.Unlock()
		close(stop)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		answers.Wait()
		if most > limit.ForwardAnswers {
			t.Errorf("%d answers at once", most)
		}
	})
}
