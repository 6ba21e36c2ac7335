package status

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/usher-mcp/usher/host"
)

// Advice is what a person can do about a server.
type Advice struct {
	Reason   string   `json:"reason,omitempty"` // in a few words; partly foreign text
	Text     string   `json:"text"`             // in a sentence
	Commands []string `json:"commands"`         // to run in this order
	Action   string   `json:"action,omitempty"` // ActionLogin, ActionReload, or "" when no button does it
}

// The actions of an Advice.
const (
	ActionLogin  = "login"
	ActionReload = "reload"
)

// Advise says what to do about a server, the most important first; nothing when nothing
// needs to be done. Restarts within restartWindow have ejected it.
func Advise(s *Server, restartWindow time.Duration) []Advice {
	var out []Advice
	switch name := s.AccountName(); s.State {
	case host.NeedsAuth:
		out = append(out, Advice{
			Text: "It needs a login.", Commands: []string{cmp.Or(s.Auth.Command, "usher login "+name)}, Action: ActionLogin,
		})
	case host.Ejected:
		return []Advice{{
			Reason:   count(s.RestartCount, "restart") + within(restartWindow),
			Text:     fmt.Sprintf("It was restarted %s and is not started again. Read its log, fix the cause, then reload it.", times(s.RestartCount)),
			Commands: []string{"usher logs " + name, "usher reload " + s.Name}, Action: ActionReload,
		}}
	case host.Failed:
		out = append(out, Advice{
			Reason: strings.TrimPrefix(s.LastError, s.Name+": "), Text: "The next call tries again. If it keeps failing:",
			Commands: []string{"usher doctor " + s.Name}, Action: ActionReload,
		})
	case Held:
		out = append(out, Advice{Text: "A project's file defines it. Check what it would run:", Commands: []string{"usher approve " + s.Name}})
	case Broken:
		out = append(out, Advice{Text: "Its definition cannot be used.", Commands: []string{"usher list " + s.Name}})
	}
	if s.Circuit == "open" {
		out = append(out, Advice{
			Reason:   "circuit open after " + count(s.ConsecutiveFailures, "failure"),
			Text:     fmt.Sprintf("It failed %s in a row, so calls are refused for a while; then one is tried.", times(s.ConsecutiveFailures)),
			Commands: []string{"usher reload " + s.Name}, Action: ActionReload,
		})
	}
	return out
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func times(n int) string { return count(n, "time") }

func within(window time.Duration) string {
	if window <= 0 {
		return ""
	}
	return " in " + Approx(window)
}

// Approx is a duration as people say it: its largest unit.
func Approx(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d d", int(d.Hours())/24)
}
