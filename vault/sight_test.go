package vault

import (
	"fmt"
	"testing"
	"time"

	"github.com/usher-mcp/usher/internal/limit"
)

func TestSightingsAreBounded(t *testing.T) {
	var s Sightings
	now := Now()
	for i := range limit.WatchedLeases + 10 {
		s.Wait(fmt.Sprint(i), LeaseMark{Holder: "h"}, time.Second, now)
	}
	if len(s.by) != limit.WatchedLeases {
		t.Errorf("%d are remembered, want %d", len(s.by), limit.WatchedLeases)
	}
	s.Forget("1")
}

// A sleeping machine, a clock that was set and a suspended process each show on one
// clock only.
func TestMoments(t *testing.T) {
	start := Now()
	for name, later := range map[string]Moment{
		"wall":   {Wall: start.Wall.Add(time.Hour), Steady: start.Steady, Boot: start.Boot},
		"steady": {Wall: start.Wall.Add(-time.Hour), Steady: start.Steady.Add(time.Hour), Boot: start.Boot},
		"boot":   {Wall: start.Wall, Steady: start.Steady, Boot: start.Boot + time.Hour},
	} {
		if d := later.AtMost(start); d != time.Hour {
			t.Errorf("%s: at most %v have passed", name, d)
		}
		if d, want := later.AtLeast(start), later.Steady.Sub(start.Steady); d != want {
			t.Errorf("%s: at least %v have passed, want %v", name, d, want)
		}
	}
	if again := Now(); again.AtLeast(start) < 0 || again.AtMost(start) > time.Minute {
		t.Errorf("between two looks: %v to %v", again.AtLeast(start), again.AtMost(start))
	}
}
