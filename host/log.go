package host

import (
	"context"
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/usher-mcp/usher/internal/limit"
)

// log writes a line about a change of state. It must not be called with mu held.
func (u *unit) log(level slog.Level, msg string, args ...any) {
	log := u.h.opt.Log
	if !log.Enabled(context.Background(), level) {
		return
	}
	dropped, ok := u.lines.Next()
	if !ok {
		return
	}
	all := []any{"server", u.key.Server}
	if u.key.Account != "" {
		all = append(all, "account", u.key.Account)
	}
	if u.key.Principal != Local {
		all = append(all, "principal", u.key.Principal)
	}
	all = append(all, args...)
	if dropped > 0 {
		all = append(all, "lines_dropped", dropped)
	}
	log.Log(context.Background(), level, msg, all...)
}

// logDown writes that there is no connection, and when the next one is tried.
func (u *unit) logDown(msg string, err error, ejected bool) {
	sup := u.srv.Supervision
	u.mu.Lock()
	next := time.Until(u.notBefore)
	u.mu.Unlock()
	if ejected {
		u.log(slog.LevelWarn, "the server is ejected", "reason", reason(err), "restart", u.budget.Used(), "max_restarts", sup.RestartLimit(),
			"window", sup.RestartWindow, "next_try", rounded(u.budget.Left()))
		return
	}
	u.log(slog.LevelWarn, msg, "reason", reason(err), "restart", u.budget.Used(), "max_restarts", sup.RestartLimit(), "next_try", rounded(next))
}

// logOpened writes that the circuit is open.
func (u *unit) logOpened() {
	_, failures := u.breaker.Look()
	u.mu.Lock()
	last := u.lastErr
	u.mu.Unlock()
	args := []any{"failures", failures, "threshold", u.srv.Supervision.CircuitThreshold, "next_try", rounded(u.breaker.Left())}
	if last != nil {
		args = append([]any{"reason", reason(last)}, args...)
	}
	u.log(slog.LevelWarn, "the circuit is open", args...)
}

func rounded(d time.Duration) time.Duration {
	if d < time.Second {
		return max(d, 0).Round(time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}

// reason is the text of an error for a log line. Some of it may come from the server.
func reason(err error) string {
	s := err.Error()
	if len(s) <= limit.ServerLogReason {
		return s
	}
	s = s[:limit.ServerLogReason]
	for !utf8.ValidString(s) && len(s) > limit.ServerLogReason-utf8.UTFMax {
		s = s[:len(s)-1]
	}
	return s + "…"
}
