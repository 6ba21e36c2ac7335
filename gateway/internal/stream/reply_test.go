package stream

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/usher-mcp/usher/gateway/internal/lifetime"
	"github.com/usher-mcp/usher/internal/limit"
)

// A client that names streams first gets one.
func TestAccept(t *testing.T) {
	for accept, want := range map[string][3]bool{
		"":                                     {true, true, false},
		"*/*":                                  {true, true, false},
		"application/json, text/event-stream":  {true, true, false},
		"text/event-stream, application/json":  {true, true, true},
		"text/event-stream;q=1":                {false, true, true},
		"Application/JSON":                     {true, false, false},
		"application/*,text/*":                 {true, true, false},
		"text/html":                            {false, false, false},
		"application/json;charset=utf-8, */*;": {true, true, false},
	} {
		h := http.Header{}
		if accept != "" {
			h.Set("Accept", accept)
		}
		if p, s, prefer := Accepts(h); [3]bool{p, s, prefer} != want {
			t.Errorf("%q: %t %t %t", accept, p, s, prefer)
		}
	}
}

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
	var held ByteQuota
	held.Init(limit.HeldBytes, limit.HeldBytesPerPrincipal)
	r := httptest.NewRequest("POST", "/mcp", nil)
	read := make(chan struct{})
	message := bytes.Repeat([]byte("x"), 1<<20)
	taken := 0
	var all []*Reply
	for range 32 {
		p := NewReply(stuckWriter{httptest.NewRecorder(), read}, r, time.Minute, &held, "eve", nil)
		all = append(all, p)
		for range 8 {
			if p.Send(message) {
				taken += len(message)
			}
		}
	}
	if taken > limit.HeldBytesPerPrincipal {
		t.Errorf("%d MiB wait for one principal", taken>>20)
	}
	close(read)
	for _, p := range all {
		p.Finish(http.StatusOK, nil)
	}
	if n := held.Size(); n != 0 {
		t.Errorf("%d bytes are counted when all is written", n)
	}
	p := NewReply(httptest.NewRecorder(), r, time.Minute, &held, "eve", nil)
	if !p.Send(message) {
		t.Error("a client that reads hears nothing")
	}
	p.Finish(http.StatusOK, nil)
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
	var held ByteQuota
	held.Init(limit.HeldBytes, limit.HeldBytesPerPrincipal)
	refuse := func(p *Reply) { p.Refuse(lifetime.ErrRevoked) }
	answer := func(p *Reply) { p.Finish(http.StatusOK, []byte(`{"secret":1}`)) }
	for name, order := range map[string][2]func(*Reply){"refused first": {refuse, answer}, "answered first": {answer, refuse}} {
		w := countingWriter{httptest.NewRecorder(), make(chan int, 2), make(chan struct{}, 2)}
		p := NewReply(w, httptest.NewRequest("POST", "/mcp", nil), time.Minute, &held, "eve", nil)
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
