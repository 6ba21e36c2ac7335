package gateway

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/mcp"
)

// stuckWriter is a client that does not read until it is told to.
type stuckWriter struct {
	http.ResponseWriter
	read chan struct{}
}

func (w stuckWriter) Write(b []byte) (int, error) {
	<-w.read
	return len(b), nil
}

// Many requests of a client that does not read what servers say meanwhile hold no more
// than the principal's share together.
func TestQueuesOfRepliesAreBounded(t *testing.T) {
	g := New(&script{}, nil)
	defer g.Close()
	r := httptest.NewRequest("POST", "/mcp", nil)
	read := make(chan struct{})
	message := bytes.Repeat([]byte("x"), 1<<20)
	taken := 0
	var all []*reply
	for range 32 {
		p := g.newReply(stuckWriter{httptest.NewRecorder(), read}, r, "eve", nil)
		all = append(all, p)
		for range 8 {
			if p.send(message) {
				taken += len(message)
			}
		}
	}
	if taken > limit.HeldBytesPerPrincipal {
		t.Errorf("%d MiB wait for one principal", taken>>20)
	}
	close(read)
	for _, p := range all {
		p.finish(http.StatusOK, nil)
	}
	if n := g.held.size(); n != 0 {
		t.Errorf("%d bytes are counted when all is written", n)
	}
	p := g.newReply(httptest.NewRecorder(), r, "eve", nil)
	if !p.send(message) {
		t.Error("a client that reads hears nothing")
	}
	p.finish(http.StatusOK, nil)
}

// What a server says before its subscription is acknowledged is kept within bounds.
func TestMessagesBeforeTheAcknowledgement(t *testing.T) {
	b := newBacklog()
	tell := &teller{out: b, tag: jsonx.Edit{Key: mcp.MetaSubscription, Value: []byte("1")}}
	params := append(append([]byte(`{"uri":"a","x":"`), bytes.Repeat([]byte("x"), 1<<20)...), `"}`...)
	for range 100 {
		tell.tell(mcp.Message{Method: mcp.MethodNotifyUpdated, Params: params})
	}
	if n := len(tell.held); n > maxQueuedBytes/len(params) {
		t.Errorf("%d messages of a MiB wait", n)
	}
}

// countingWriter counts who writes at the same time, and what was begun.
type countingWriter struct {
	*httptest.ResponseRecorder
	statuses chan int
	write    chan struct{} // every status waits for one
}

func (w countingWriter) WriteHeader(status int) {
	w.statuses <- status
	<-w.write
	w.ResponseRecorder.WriteHeader(status)
}

// A token that ends while the answers to a batch are ready is answered once: with 401
// and without the answers, or the other way round.
func TestRefusalAndAnswerAtOnce(t *testing.T) {
	g := New(&script{}, nil)
	defer g.Close()
	refuse := func(p *reply) { p.refuse(errTokenRevoked) }
	answer := func(p *reply) { p.finish(http.StatusOK, []byte(`{"secret":1}`)) }
	for name, order := range map[string][2]func(*reply){"refused first": {refuse, answer}, "answered first": {answer, refuse}} {
		w := countingWriter{httptest.NewRecorder(), make(chan int, 2), make(chan struct{}, 2)}
		p := g.newReply(w, httptest.NewRequest("POST", "/mcp", nil), "eve", nil)
		var wg sync.WaitGroup
		wg.Go(func() { order[0](p) })
		status := <-w.statuses
		w.write <- struct{}{} // the second is for what must not be written
		w.write <- struct{}{}
		order[1](p)
		wg.Wait()
		if len(w.statuses) != 0 || status == http.StatusUnauthorized && bytes.Contains(w.Body.Bytes(), []byte("secret")) {
			t.Errorf("%s: %d, then %d more: %s", name, status, len(w.statuses), w.Body)
		}
	}
}
