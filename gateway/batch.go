package gateway

import (
	"context"
	"net/http"
	"sync"

	"github.com/usher-mcp/usher/gateway/internal/lifetime"
	"github.com/usher-mcp/usher/gateway/internal/stream"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/mcp"
)

// splitBatch takes a batch apart, which one revision has.
func splitBatch(body []byte) ([]mcp.Message, error) {
	parts, err := mcp.SplitBatch(body)
	if err != nil {
		return nil, err
	}
	if len(parts) > limit.BatchMessages {
		return nil, mcp.Errorf(mcp.CodeInvalidRequest, "the batch has %d messages; at most %d are accepted", len(parts), limit.BatchMessages)
	}
	messages := make([]mcp.Message, len(parts))
	for i, part := range parts {
		if messages[i], err = mcp.Parse(part); err != nil {
			return nil, err
		}
	}
	return messages, nil
}

// batch is the requests of one POST while they run.
type batch struct {
	s        *session
	p        *stream.Reply
	requests []*mcp.Message
	life     lifetime.Lifetime

	mu      sync.Mutex // guards what follows
	next    int        // the first request that did not start
	left    bool       // the client left, and nothing else starts
	answers []byte
}

// answerBatch runs the requests of a batch, a few at once. Each takes a slot of the
// principal until it ends, also when the client left before: the first worker has
// the slot of the POST, and there are others as long as there are slots.
func (g *Gateway) answerBatch(r *http.Request, s *session, p *stream.Reply, requests []*mcp.Message) {
	if !g.enterWork() {
		p.Leave()
		return
	}
	defer g.wg.Done()
	b := &batch{s: s, p: p, requests: requests, life: lifetime.Of(r.Context())}
	defer context.AfterFunc(r.Context(), func() {
		b.stop()
		if lifetime.Ended(r.Context()) == nil {
			p.Leave()
		}
	})()
	var workers sync.WaitGroup
	for range min(len(requests), limit.BatchWorkers) - 1 {
		u := g.limits.call(s.agent.Principal)
		if u == nil {
			break
		}
		workers.Go(func() {
			defer u.calls.Add(-1)
			b.work()
		})
	}
	b.work()
	workers.Wait()
	if p.Refuse(lifetime.Ended(r.Context())) {
		return
	}
	if b.answers == nil {
		p.Finish(http.StatusAccepted, nil)
		return
	}
	b.answers[0] = '['
	p.Finish(http.StatusOK, append(b.answers, ']'))
}

func (b *batch) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = true
}

// work serves one request after the other until none is left.
func (b *batch) work() {
	for m := b.take(); m != nil; m = b.take() {
		if a := b.s.serve(m, b.p, b.life); !a.none {
			b.add(a, m.ID)
		}
	}
}

func (b *batch) take() *mcp.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left || b.next == len(b.requests) {
		return nil
	}
	b.next++
	return b.requests[b.next-1]
}

// add keeps an answer until all are there.
func (b *batch) add(a response, id mcp.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.answers)+len(a.result) > limit.BatchAnswerBytes {
		a = failure(mcp.CodeInternal, "the answers to this batch are too large together; send the request alone")
	}
	b.answers = a.append(append(b.answers, ','), id)
}
