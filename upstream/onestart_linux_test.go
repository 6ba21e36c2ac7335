package upstream_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/upstream"
)

// Only a child that read the question which protocol it speaks, and whose protocol is
// not known, is started again with the other handshake.
func TestExitBeforeAnswer(t *testing.T) {
	for name, tt := range map[string]struct {
		script string
		opt    upstream.Options
		starts int
	}{
		"exits at once":           {script: "exit 1", starts: 1},
		"exits without reading":   {script: "sleep 0.2; exit 1", starts: 1},
		"reads and exits":         {script: "read line; exit 1", starts: 2},
		"reads and exits, modern": {script: "read line; exit 1", opt: upstream.Options{Version: mcp.Latest}, starts: 1},
		"reads and exits, once":   {script: "read line; exit 1", opt: upstream.Options{OneStart: true}, starts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ledger := filepath.Join(t.TempDir(), "starts")
			told := 0
			tt.opt.OnStart = func() { told++ }
			srv := config.Server{Name: "a", Command: "sh", Args: []string{"-c", fmt.Sprintf("echo >>%q; %s", ledger, tt.script)}}.WithDefaults()
			_, err := upstream.Dial(t.Context(), &srv, &tt.opt)
			if !errors.Is(err, upstream.ErrTransport) {
				t.Fatal(err)
			}
			raw, err := os.ReadFile(ledger)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(raw), "\n"); n != tt.starts || told != n {
				t.Errorf("%d starts, %d told of, want %d", n, told, tt.starts)
			}
		})
	}
}
