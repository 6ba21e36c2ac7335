package policy

import (
	"testing"
	"time"

	"github.com/usher-mcp/usher/host"
)

// A list that several connections share is judged once for all of them, and again
// when one of them has read it anew.
func TestSameList(t *testing.T) {
	at := time.Now()
	list := [][]byte{[]byte(`{"name":"a"}`)}
	set := &toolset{list: list, at: at}
	for _, tt := range []struct {
		name string
		c    host.Catalog
		want bool
	}{
		{"itself", host.Catalog{Tools: list, At: at}, true},
		{"read earlier over another connection", host.Catalog{Tools: list, At: at.Add(-time.Minute)}, true},
		{"read anew", host.Catalog{Tools: list, At: at.Add(time.Second)}, false},
		{"another list", host.Catalog{Tools: [][]byte{[]byte(`{"name":"b"}`)}, At: at}, false},
		{"no list", host.Catalog{At: at}, false},
	} {
		if got := set.sameList(tt.c); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
