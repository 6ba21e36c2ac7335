package status

import (
	"strings"
	"testing"
	"time"

	"github.com/usher-mcp/usher/host"
)

func TestAdvise(t *testing.T) {
	for _, tt := range []struct {
		name     string
		row      host.ServerStatus
		reason   string
		commands string
		more     int
	}{
		{"connected", host.ServerStatus{State: host.Connected}, "", "", -1},
		{"login", host.ServerStatus{State: host.NeedsAuth, Account: "work"}, "", "usher login s@work", 0},
		{"login with a command", host.ServerStatus{State: host.NeedsAuth, Auth: host.AuthStatus{Command: "usher login s --device"}}, "", "usher login s --device", 0},
		{"ejected", host.ServerStatus{State: host.Ejected, RestartCount: 6, Circuit: "open"}, "6 restarts in 5 min", "usher logs s, usher reload s", 0},
		{"failed", host.ServerStatus{State: host.Failed, LastError: "s: no luck"}, "no luck", "usher doctor s", 0},
		{"failed, circuit open", host.ServerStatus{State: host.Failed, Circuit: "open"}, "", "usher doctor s", 1},
		{"circuit open", host.ServerStatus{State: host.Connected, Circuit: "open", ConsecutiveFailures: 1}, "circuit open after 1 failure", "usher reload s", 0},
		{"held", host.ServerStatus{State: Held}, "", "usher approve s", 0},
		{"broken", host.ServerStatus{State: Broken}, "", "usher list s", 0},
	} {
		tt.row.Name = "s"
		got := Advise(&Server{ServerStatus: tt.row}, 5*time.Minute)
		if len(got) != tt.more+1 {
			t.Errorf("%s: %+v", tt.name, got)
			continue
		}
		if len(got) > 0 && (got[0].Reason != tt.reason || strings.Join(got[0].Commands, ", ") != tt.commands || got[0].Text == "") {
			t.Errorf("%s: %+v", tt.name, got[0])
		}
	}
}
