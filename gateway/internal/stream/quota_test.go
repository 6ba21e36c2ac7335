package stream

import (
	"testing"

	"github.com/usher-mcp/usher/internal/limit"
)

// What is held for clients that are away is bounded, for all and for each principal.
func TestHeldBytes(t *testing.T) {
	h := ByteQuota{max: limit.HeldBytes, share: limit.HeldBytesPerPrincipal}
	if !h.Take("a", limit.HeldBytesPerPrincipal) || h.Take("a", 1) {
		t.Error("the share of a principal is not kept")
	}
	if !h.Take("b", limit.HeldBytes-limit.HeldBytesPerPrincipal) || h.Take("c", 1) {
		t.Error("the limit of all is not kept")
	}
	h.Give("a", 1)
	if !h.Take("c", 1) || h.Take("c", 1) {
		t.Error("what was given back is not there")
	}
	h.Give("c", 1)
	h.Give("a", limit.HeldBytesPerPrincipal-1)
	h.Give("b", limit.HeldBytes-limit.HeldBytesPerPrincipal)
	if h.Size() != 0 || len(h.of) != 0 {
		t.Errorf("%d bytes, %v are left", h.Size(), h.of)
	}
}
