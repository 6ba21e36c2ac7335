package stream

import (
	"sync"
)

// ByteQuota counts the bytes that are held for clients that do not read or are away:
// questions of suspended calls, what waits for the stream of a session or a request,
// and what a broken stream is resumed from. Another one counts the bodies of requests.
type ByteQuota struct {
	max, share int // of all, of one principal

	mu  sync.Mutex // guards what follows
	all int
	of  map[string]int // by principal
}

// Init sets how much all principals together and each of them may have.
func (h *ByteQuota) Init(all, each int) { h.max, h.share = all, each }

// Take counts n bytes more and reports whether there is room for them.
func (h *ByteQuota) Take(principal string, n int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all+n > h.max || h.of[principal]+n > h.share {
		return false
	}
	if h.of == nil {
		h.of = map[string]int{}
	}
	h.all += n
	h.of[principal] += n
	return true
}

// Give takes n bytes off again.
func (h *ByteQuota) Give(principal string, n int) {
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

// Size is how many bytes are counted now.
func (h *ByteQuota) Size() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all
}
