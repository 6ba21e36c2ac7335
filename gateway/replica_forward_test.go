package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/surface"
	"github.com/usher-mcp/usher/test/need"
)

// replica is one of several gateways that share a key.
type replica struct {
	g *Gateway
	*httptest.Server
}

// replicas starts n gateways before the same view.
func replicas(t *testing.T, n int, view Endpoints) []replica {
	t.Helper()
	return replicasOf(t, n, view, Options{Key: bytes.Repeat([]byte{7}, sealKeyLen)})
}

func replicasOf(t *testing.T, n int, view Endpoints, opt Options) []replica {
	t.Helper()
	out := make([]replica, n)
	for i := range out {
		srv := httptest.NewUnstartedServer(nil)
		opt := opt
		opt.Peer = "http://" + srv.Listener.Addr().String()
		g := New(view, &opt)
		srv.Config.Handler = g.Handler()
		srv.Start()
		out[i] = replica{g, srv}
		t.Cleanup(func() {
			g.Close()
			srv.Close()
		})
	}
	return out
}

// ask sends a message to a replica and returns the answer's status, header and body.
func (r replica) ask(t *testing.T, method, body string, head ...string) (int, http.Header, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, r.URL+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(head); i += 2 {
		req.Header.Set(head[i], head[i+1])
	}
	res, err := r.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(text)
}

const (
	initializeV25 = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`
	callX         = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{}}}`
)

// A session lives at one gateway and works through all of them; its end is known
// everywhere, and so is the end of its gateway.
func TestSessionThroughAnyReplica(t *testing.T) {
	view := &script{do: func(_ context.Context, a surface.Agent, _ mcp.Request) ([]byte, error) {
		return fmt.Appendf(nil, `{"lane":%q}`, a.Lane), nil
	}}
	all := replicas(t, 3, view)
	_, head, _ := all[0].ask(t, "POST", initializeV25)
	session := head.Get(wire.HeaderSession)
	lanes := map[string]bool{}
	for _, r := range all {
		status, _, answer := r.ask(t, "POST", callX, wire.HeaderSession, session)
		if status != http.StatusOK {
			t.Fatalf("%d %s", status, answer)
		}
		lanes[string(member(result(t, last(answer)), "lane"))] = true
	}
	if len(lanes) != 1 || all[0].g.Stats().Sessions != 1 || all[1].g.Stats().Sessions != 0 {
		t.Errorf("the session is in several places: %v", lanes)
	}
	if n := all[0].g.Stats().Forwarded + 10*all[1].g.Stats().Forwarded + 100*all[2].g.Stats().Forwarded; n != 110 {
		t.Errorf("handed on %d times", n)
	}
	for name, head := range map[string][]string{
		"nobody's":              {wire.HeaderSession, "nobody"},
		"handed on before":      {wire.HeaderSession, session, headerForwarded, "1"},
		"changed":               {wire.HeaderSession, session[:20] + "AAAA" + session[24:]},
		"of a key of their own": {wire.HeaderSession, New(view, &Options{Peer: all[0].URL}).newSessionID()},
	} {
		if status, _, text := all[1].ask(t, "POST", callX, head...); status != http.StatusNotFound {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if status, _, _ := all[2].ask(t, "DELETE", "", wire.HeaderSession, session); status != http.StatusNoContent {
		t.Errorf("delete: %d", status)
	}
	if status, _, _ := all[1].ask(t, "POST", callX, wire.HeaderSession, session); status != http.StatusNotFound {
		t.Errorf("after its end: %d", status)
	}
	_, head, _ = all[0].ask(t, "POST", initializeV25)
	all[0].g.Close()
	all[0].Close()
	all[1].g.peers.CloseIdleConnections() // over one that seems open it would not be known whether it has run
	status, _, text := all[1].ask(t, "POST", callX, wire.HeaderSession, head.Get(wire.HeaderSession))
	if status != http.StatusNotFound || !strings.Contains(text, "send initialize again") {
		t.Errorf("after the end of its gateway: %d %s", status, text)
	}
}

// An agent's answer to a question finds the gateway that asked, and a stream comes
// from there as it flows.
func TestQuestionThroughAnyReplica(t *testing.T) {
	view := &script{do: func(ctx context.Context, _ surface.Agent, r mcp.Request) ([]byte, error) {
		got, bad := r.OnRequest(ctx, mcp.MethodElicit, []byte(`{"message":"who"}`))
		if bad != nil {
			return nil, bad
		}
		return fmt.Appendf(nil, `{"got":%s}`, got), nil
	}}
	all := replicas(t, 2, view)
	_, head, _ := all[0].ask(t, "POST", initializeV25)
	session := head.Get(wire.HeaderSession)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, all[1].URL+"/mcp", strings.NewReader(callX))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", wire.HeaderSession: session} {
		req.Header.Set(k, v)
	}
	res, err := all[1].Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text := ""
	for buf := make([]byte, 4096); !strings.Contains(text, "elicitation/create"); {
		n, err := res.Body.Read(buf)
		if text += string(buf[:n]); err != nil {
			t.Fatalf("%v after %s", err, text)
		}
	}
	_, question, _ := strings.Cut(text, `"id":`)
	id, _, _ := strings.Cut(question, ",")
	for i := range 2 { // the second one answers nothing
		answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept"}}`, id)
		if status, _, text := all[1-i].ask(t, "POST", answer, wire.HeaderSession, session); status != http.StatusAccepted {
			t.Errorf("%d %s", status, text)
		}
	}
	rest, err := io.ReadAll(res.Body)
	if err != nil || !bytes.Contains(rest, []byte(`"got":{"action":"accept"}`)) {
		t.Errorf("%s, %v", rest, err)
	}
}

// The retry of a suspended call finds the gateway that suspended it.
func TestRetryThroughAnyReplica(t *testing.T) {
	ended := make(chan error, 8)
	all := replicas(t, 2, asking(ended))
	call := func(i int, more string) []byte {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{}%s,%s}}`, more, askMeta)
		_, _, text := all[i].ask(t, "POST", body, wire.HeaderVersion, mcp.Latest, wire.HeaderMethod, mcp.MethodToolsCall, wire.HeaderName, "x")
		return last(text)
	}
	state := func(answer []byte) string { return string(member(result(t, answer), "requestState")) }
	answer := call(0, "")
	for round := 1; !strings.Contains(string(answer), `"message":"c"`); round++ {
		if round > 5 {
			t.Fatalf("after five rounds: %s", answer)
		}
		answer = call(round%2, `,"inputResponses":{"q1":{"v":"1"},"q2":{"v":"1"}},"requestState":`+state(answer))
	}
	third := state(answer)
	if got := call(1, `,"inputResponses":{"q3":{"v":"3"}},"requestState":`+third); !strings.Contains(string(got), `"text":"113"`) {
		t.Errorf("ended with %s", got)
	}
	answer = call(0, "")
	all[0].g.Close()
	all[0].Close()
	all[1].g.peers.CloseIdleConnections()
	if got := call(1, `,"inputResponses":{},"requestState":`+state(answer)); errorCode(got) != mcp.CodeInvalidParams || !strings.Contains(string(got), "is gone") {
		t.Errorf("after the end of its gateway: %s", got)
	}
}

// A gateway that is gone does not hold up the others for long: the agent is told.
func TestPeerThatCannotBeReached(t *testing.T) {
	address, err := need.Address()
	if err != nil {
		t.Fatal(err)
	}
	all := replicas(t, 1, &script{})
	gone := New(&script{}, &Options{Key: bytes.Repeat([]byte{7}, sealKeyLen), Peer: "http://" + address})
	id := gone.newSessionID()
	began := time.Now()
	status, _, _ := all[0].ask(t, "POST", callX, wire.HeaderSession, id)
	if status != http.StatusNotFound || time.Since(began) > 20*time.Second {
		t.Errorf("%d after %v", status, time.Since(began))
	}
}
