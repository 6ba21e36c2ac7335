package clients

import (
	"net"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/usher-mcp/usher/internal/person"
	"github.com/usher-mcp/usher/test/need"
)

// TestNewcomer does what somebody does who has just installed usher, at a terminal,
// with the files of several clients in a home of its own.
func TestNewcomer(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			port, err := need.Port()
			if err != nil {
				return err
			}
			home := filepath.Join(e.WorkDir, "home")
			for name, value := range map[string]string{
				"HOME": home, "PORT": strconv.Itoa(port), "BROWSER": "visit", "NO_COLOR": "1", "TZ": "UTC", "GORACE": "atexit_sleep_ms=0",
				// There is no keychain in the home of a test.
				"XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "", "DBUS_SESSION_BUS_ADDRESS": "",
			} {
				e.Setenv(name, value)
			}
			token, err := person.NewToken(filepath.Join(home, ".config", "usher"))
			e.Setenv(person.TokenVariable, token)
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"await": await},
	})
}

// await waits until somebody listens: await PORT
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: await PORT")
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 1500 {
		if conn, err := net.Dial("tcp", "127.0.0.1:"+args[0]); err == nil {
			_ = conn.Close()
			return
		}
		<-tick.C
	}
	ts.Fatalf("nobody listens on port %s", args[0])
}
