package gateway

import (
	"sync"

	"github.com/usher-mcp/usher/internal/limit"
)

// heldBytes counts the bytes that are held for clients that do not read or are away:
// questions of suspended calls, what waits for a session's stream, and what a broken
// stream is resumed from. One principal may have half of them.
type heldBytes struct {
	mu  sync.Mutex // guards what follows
	all int
	of  map[string]int // by principal
}

// take counts n bytes more and reports whether there is room for them.
func (h *heldBytes) take(principal string, n int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all+n > limit.HeldBytes || h.of[principal]+n > limit.HeldBytesPerPrincipal {
		return false
	}
	if h.of == nil {
		h.of = map[string]int{}
	}
	h.all += n
	h.of[principal] += n
	return true
}

// give takes n bytes off again.
func (h *heldBytes) give(principal string, n int) {
	if n == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all -= n
	if h.of[principal] -= n; h.of[principal] <= 0 {
		delete(h.of, principal)
	}
}

func (h *heldBytes) size() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all
}
