package host

import (
	"context"
	"log/slog"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/usher-mcp/usher/internal/limit"
)

// logPace limits the log lines about one connection: a server that comes and goes many
// times a second must not fill the disk. What was left out is counted on the next line.
type logPace struct {
	mu      sync.Mutex // guards what follows
	since   time.Time  // when the period began
	written int        // lines in this period
	dropped int        // lines left out since the last one
}

// next reports whether a line may be written, and how many were left out before it.
func (p *logPace) next() (dropped int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); now.Sub(p.since) >= time.Minute {
		p.since, p.written = now, 0
	}
	if p.written >= limit.ServerLogLines {
		p.dropped++
		return 0, false
	}
	p.written++
	dropped, p.dropped = p.dropped, 0
	return dropped, true
}

// log writes a line about a change of state. It must not be called with mu held.
func (u *unit) log(level slog.Level, msg string, args ...any) {
	log := u.h.opt.Log
	if !log.Enabled(context.Background(), level) {
		return
	}
	dropped, ok := u.lines.next()
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
		u.log(slog.LevelWarn, "the server is ejected", "reason", reason(err), "restart", u.budget.used(), "max_restarts", sup.RestartLimit(),
			"window", sup.RestartWindow, "next_try", rounded(u.budget.left()))
		return
	}
	u.log(slog.LevelWarn, msg, "reason", reason(err), "restart", u.budget.used(), "max_restarts", sup.RestartLimit(), "next_try", rounded(next))
}

// logOpened writes that the circuit is open.
func (u *unit) logOpened() {
	_, failures := u.breaker.look()
	u.mu.Lock()
	last := u.lastErr
	u.mu.Unlock()
	args := []any{"failures", failures, "threshold", u.srv.Supervision.CircuitThreshold, "next_try", rounded(u.breaker.left())}
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
