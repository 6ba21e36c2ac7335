package fake

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/mcp"
)

// stdioCase is a switch and what a client reads on stdio.
type stdioCase struct {
	sw    string
	send  []string // default: the echo call of the modern era
	after time.Duration
	want  []string // substrings of all lines read, in order
	never []string
	exits bool
}

const (
	legacyCall      = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{}}}`
	modernTemplates = `{"jsonrpc":"2.0","id":2,"method":"resources/templates/list","params":{` + modernMe + `}}`
	modernList      = `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{` + modernMe + `}}`
	okEcho          = `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"{\"n\":9007199254740993}"}],"structuredContent":{"n":9007199254740993},"resultType":"complete"`
	modernSlow      = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow","arguments":{"ms":1000},` + modernMe + `}}`
	cancelTwo       = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`
	listenLine      = `{"jsonrpc":"2.0","id":5,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + modernMe + `}}`
	mutateLine      = `{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"mutate",` + modernMe + `}}`
	mutateLine7     = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"mutate",` + modernMe + `}}`
)

func stdioCases() []stdioCase {
	return []stdioCase{
		{sw: "silent", after: time.Hour, never: []string{"result"}},
		{sw: "silent-probe", send: []string{discover, initLine}, after: time.Hour, want: []string{`"protocolVersion":"2025-11-25"`}, never: []string{"supportedVersions"}},
		{sw: "exit-on-probe", send: []string{discover}, exits: true},
		{sw: "exit-on-start", exits: true},
		{sw: "crash-loop=1", send: []string{echoCall, modernList}, want: []string{okEcho}, exits: true},
		{sw: "latency=50", after: 49 * time.Millisecond, never: []string{"result"}},
		{sw: "latency=50;on=tools/call", after: 50 * time.Millisecond, want: []string{okEcho}},
		{sw: "latency=50;times=1;after=1", want: []string{okEcho}},
		{sw: "stderrflood=2", want: []string{okEcho}},
		{sw: "cancelled-ignored", send: []string{modernSlow, cancelTwo}, after: 2 * time.Second, want: []string{`"text":"done"`}},
		{sw: "garbage", want: []string{"Server listening", "{not json}", "a log line", "Server listening", okEcho}},
		{sw: "hugegarbage=2", want: []string{"dump: " + strings.Repeat("x", 2e6) + "\n", okEcho}},
		{sw: "bigline=2", want: []string{strings.Repeat("x", 2e6) + `"}]}}` + "\n"}},
		{sw: "badutf8", want: []string{"bad \xff\xfe utf8"}},
		{sw: "deep=2000", want: []string{strings.Repeat("[", 2000) + strings.Repeat("]", 2000)}},
		{sw: "hugenumber=300", want: []string{`1e400`, strings.Repeat("9", 300)}},
		{sw: "crlf", want: []string{okEcho, "}\r\n"}},
		{sw: "slowbyte=1000", after: 20 * time.Second, want: []string{`{"jsonrpc":"2.0","id`}, never: []string{"result"}},
		{sw: "slowbyte=1", after: time.Second, want: []string{okEcho}},
		{sw: "halfclose", want: []string{`{"jsonrpc":"2.0","id":2,"result":`}, never: []string{"resultType"}, exits: true},
		{sw: "halfclose=headers", never: []string{"jsonrpc"}, exits: true},
		{sw: "wrongid", want: []string{`"id":987654321,"result"`}},
		{sw: "dup", want: []string{okEcho, okEcho}},
		{sw: "idtype", want: []string{`"id":"2","result"`}},
		{sw: "nullid-error", want: []string{`"id":null,"error"`}},
		{sw: "unsolicited=2", want: []string{`"id":5000000`, `"id":5000001`, okEcho}},
		{sw: "badversion", send: []string{discover, initLine}, want: []string{`1999-01-01`, `1999-01-01`}},
		{sw: "noresulttype", want: []string{`"id":2`}, never: []string{"resultType"}},
		{sw: "unknown-resulttype", want: []string{`"resultType":"surprise"`}},
		{sw: "tasks-result", want: []string{`"resultType":"task"`}},
		{sw: "nullresult", want: []string{`"result":null`}},
		{sw: "stateonly", want: []string{`"requestState":"again"`}, never: []string{"inputRequests"}},
		{sw: "askforever", want: []string{`"inputRequests"`}},
		{sw: "case-variant", want: []string{`"Result":`, `"result":`}},
		{sw: "duplicate-key", want: []string{`"result":`, `"result":`}},
		{sw: "batch", want: []string{`[{"jsonrpc"`, `}]`}},
		{sw: "rpc-error=-32099", want: []string{`"error":{"code":-32099`}},
		{sw: "loop", send: []string{modernList}, want: []string{`"nextCursor":"again"`}},
		{sw: "emptycursor", send: []string{modernList}, want: []string{`"nextCursor":""`}, never: []string{`"name":"add"`}},
		{sw: "manypages=3", send: []string{modernList}, want: []string{`"page_1"`, `"nextCursor":"page-2"`}},
		{sw: "manytools=3", send: []string{modernList}, want: []string{`"tool_00000"`, `"tool_00002"`}},
		{sw: "list-changed", send: []string{initLine, legacyList(2), legacyList(3)}, want: []string{"notifications/tools/list_changed"}},
		{sw: "schema-change=1", send: []string{modernList}, want: []string{`"bcc"`}},
		{sw: "poison", send: []string{modernList}, want: []string{"\u200b\u202e"}},
		{sw: "remote-ref=http://127.0.0.1:1/s", send: []string{modernList}, want: []string{`{"$ref":"http://127.0.0.1:1/s"}`}},
		{sw: "duplicate-tools", send: []string{modernList}, want: []string{`"name":"echo"`, `"name":"echo"`}},
		{sw: "lying-annotations", send: []string{modernList}, want: []string{`"name":"pay"`, `"readOnlyHint":true`}, never: []string{`"destructiveHint":true`}},
		{sw: "invalid-header-tools", send: []string{modernList}, want: []string{`"x-mcp-header":"My Region"`}},
		{sw: "quadratic-definition=2", send: []string{modernList}, want: []string{`"p1":{"required":["b","a"]}`}},
		{sw: "deep-definition=3", send: []string{modernList}, want: []string{`"name":"deep"`, `{}}}}`}},
		{sw: "huge-definition=1", send: []string{modernList}, want: []string{`"name":"huge","description":"aaaa`}},
		{sw: "long-names=2", send: []string{modernList}, want: []string{`"name":"long_00000_nnn`, `"name":"long_00001_nnn`}},
		{sw: "template-bomb=1", send: []string{modernTemplates}, want: []string{`"uriTemplate":"{x}a{x}a`}},
		{sw: "ping", send: []string{initLine, legacyCall, `{"jsonrpc":"2.0","id":1,"result":{}}`}, want: []string{`"method":"ping"`, `"id":2,"result"`}},
		{sw: "unknown-request", send: []string{initLine, legacyCall, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}`}, want: []string{`"method":"fake/unknown"`, `"id":2,"result"`}},
		{sw: "notification-flood=3", want: []string{"noise", "noise", "noise", okEcho}},
		{sw: "progress-flood=2", want: []string{`"progressToken":"tok","progress":1`, `"progress":2`, okEcho}},
		{sw: "endless-progress=1000", after: 3 * time.Second, want: []string{`"progress":1,`, `"progress":2,`}, never: []string{"result"}},
		{sw: "wrong-token", want: []string{"nobody-has-this-token", okEcho}},
		{sw: "ping-flood=2", send: []string{initLine, legacyCall}, want: []string{`"id":"flood-0","method":"ping"`, `"id":"flood-1","method":"ping"`, `"id":2,"result"`}},
		{sw: "ping-flood=2", want: []string{okEcho}, never: []string{"flood"}},
		{sw: "ask-flood=2", send: []string{initLine, legacyCall}, want: []string{`"method":"elicitation/create"`, `"method":"sampling/createMessage"`, `"id":2,"result"`}},
		{sw: "unknown-flood=2", want: []string{"notifications/fake/0", "notifications/fake/1", okEcho}},
		{sw: "change-flood=2", want: []string{"notifications/tools/list_changed", "notifications/prompts/list_changed", okEcho}},
		{sw: "deaf", want: []string{okEcho}},
		{sw: "list-bomb=1", send: []string{modernList}, want: []string{`"name":"bomb_0"`, strings.Repeat("x", 1024), `"nextCursor":"bomb-1"`}},
		{sw: "listen-drop=1", send: []string{listenLine, mutateLine, mutateLine7}, want: []string{"acknowledged", "tools/list_changed"}, never: []string{`"id":5,"result"`}},
	}
}

func legacyList(id int) string {
	return string(mcp.AppendRequest(nil, mcp.IntID(int64(id)), mcp.MethodToolsList, nil))
}

func TestSwitchesOnStdio(t *testing.T) {
	for _, tt := range stdioCases() {
		t.Run(tt.sw, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { tt.run(t) })
		})
	}
}

func (tt stdioCase) run(t *testing.T) {
	var stderr strings.Builder
	s := New(&Options{Switches: []string{tt.sw}, Stderr: &stderr})
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- s.ServeStdio(context.Background(), inR, outW) }()
	var mu sync.Mutex
	var got strings.Builder
	read := make(chan struct{})
	go func() {
		defer close(read)
		collect(outR, &mu, &got)
	}()
	if tt.send == nil {
		tt.send = []string{echoCall}
	}
	for _, line := range tt.send {
		_, _ = io.WriteString(inW, line+"\n") // a server that exited does not read
		synctest.Wait()
	}
	time.Sleep(tt.after) // of the bubble
	synctest.Wait()
	mu.Lock()
	text := got.String()
	mu.Unlock()
	inW.Close()
	s.Close()
	err := <-done
	<-read
	if errors.Is(err, ErrExited) != tt.exits {
		t.Errorf("ServeStdio = %v, want exit %v", err, tt.exits)
	}
	if strings.HasPrefix(tt.sw, "stderrflood") && stderr.Len() < 4096 {
		t.Errorf("%d bytes on stderr", stderr.Len())
	}
	checkText(t, text, tt.want, tt.never)
}

// collect reads until the server closes its end.
func collect(r io.Reader, mu *sync.Mutex, got *strings.Builder) {
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		mu.Lock()
		got.Write(buf[:n])
		mu.Unlock()
		if err != nil {
			return
		}
	}
}

// checkText looks for the wanted substrings in order, and for the forbidden ones.
func checkText(t *testing.T, text string, want, never []string) {
	t.Helper()
	rest := text
	for _, w := range want {
		_, after, ok := strings.Cut(rest, w)
		if !ok {
			t.Fatalf("%q is missing or too early in:\n%.3000s", w, text)
		}
		rest = after
	}
	for _, n := range never {
		if strings.Contains(text, n) {
			t.Errorf("%q must not be in:\n%.3000s", n, text)
		}
	}
}

func TestNeverExit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(&Options{Switches: []string{"neverexit=600"}})
		inR, inW := io.Pipe()
		done := make(chan error, 1)
		start := time.Now()
		go func() { done <- s.ServeStdio(context.Background(), inR, io.Discard) }()
		inW.Close()
		<-done
		if lived := time.Since(start); lived < 600*time.Second {
			t.Errorf("it exited after %v", lived)
		}
		s.Close()
	})
}
