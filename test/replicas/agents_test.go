package replicas

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// agents call tools through the balancer, each request over a connection of its own,
// so that each goes to another replica.
type agents struct {
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu      sync.Mutex // guards what follows
	calls   int
	lost    int // ended without an answer
	wrong   []string
	slowest time.Duration
}

// call starts n agents that call add on random servers.
func (w *world) call(n int, servers []string, pause time.Duration) *agents {
	ctx, stop := context.WithCancel(w.t.Context())
	a := &agents{stop: stop}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
	for i := range n {
		a.wg.Go(func() {
			for ctx.Err() == nil {
				a.one(ctx, client, "http://"+w.lb.addr+"/servers/"+servers[(i+rand.IntN(len(servers)))%len(servers)]+"/mcp")
				select {
				case <-ctx.Done():
				case <-time.After(pause):
				}
			}
		})
	}
	return a
}

func addRequest(ctx context.Context, url string) (*http.Request, error) {
	return toolRequest(ctx, url, "add", `{"a":1,"b":2}`)
}

func toolRequest(ctx context.Context, url, tool, arguments string) (*http.Request, error) {
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments +
		`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for k, v := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool,
	} {
		req.Header.Set(k, v)
	}
	return req, nil
}

func (a *agents) one(ctx context.Context, client *http.Client, url string) {
	req, err := addRequest(context.WithoutCancel(ctx), url)
	if err != nil {
		panic(err) // a constant
	}
	began := time.Now()
	text := ""
	resp, err := client.Do(req)
	if err == nil {
		var body []byte
		body, err = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		text = fmt.Sprintf("%d %s", resp.StatusCode, body)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls++
	a.slowest = max(a.slowest, time.Since(began))
	switch {
	case err != nil:
		a.lost++
	case !strings.Contains(text, `"text":"3"`):
		a.wrong = append(a.wrong, fmt.Sprintf("%s %.300s", began.Format(time.TimeOnly), text))
	}
}

// end stops the agents and checks that calls failed only because their replica died.
func (a *agents) end(t *testing.T, cut int) {
	t.Helper()
	a.stop()
	a.wg.Wait()
	t.Logf("%d calls, %d without an answer, %d connections cut by kills, slowest %v", a.calls, a.lost, cut, a.slowest.Round(time.Millisecond))
	for i, w := range a.wrong {
		if i < 10 {
			t.Errorf("a call was answered with %s", w)
		}
	}
	if len(a.wrong) > 10 {
		t.Errorf("and %d more", len(a.wrong)-10)
	}
	if a.lost > cut {
		t.Errorf("%d calls got no answer, but only %d connections were cut", a.lost, cut)
	}
	if a.calls-a.lost < 10 {
		t.Errorf("only %d calls were answered", a.calls-a.lost)
	}
}
