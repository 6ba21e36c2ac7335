package stream

import (
	"strings"
	"testing"

	"github.com/usher-mcp/usher/mcp"
)

func TestTracks(t *testing.T) {
	var ts Replays
	if ts.Begin(mcp.V20250618) != nil {
		t.Error("a track before there were any")
	}
	first := ts.Begin(mcp.V20251125)
	big := []byte(`"` + strings.Repeat("x", maxTrackBytes/2) + `"`)
	for range 4 {
		first.Add(big, false)
	}
	frames, next, done := first.Since(0)
	if len(frames) != 1 || next != 4 || done {
		t.Errorf("%d frames kept, next %d", len(frames), next)
	}
	for range maxTracks - 1 {
		ts.Begin(mcp.V20251125)
	}
	if ts.Begin(mcp.V20251125) != nil {
		t.Error("more tracks than allowed, and none has ended")
	}
	first.Add([]byte(`{}`), true)
	if ts.Begin(mcp.V20251125) == nil {
		t.Error("an ended one makes no room")
	}
	for _, id := range []string{"", "1", "x-1", "1-x", "999-1", "1-0"} {
		if found, _ := ts.Find(id); found != nil {
			t.Errorf("%q finds one", id)
		}
	}
	if found, n := ts.Find("2-7"); found == nil || n != 7 {
		t.Errorf("%v %d", found, n)
	}
}
