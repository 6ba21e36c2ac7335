package stream

import (
	"github.com/usher-mcp/usher/internal/jsonx"
)

// LevelReached reports whether a log message reaches the level that was asked for.
func LevelReached(level string, params []byte) bool {
	least := Severity(level)
	return least >= 0 && Severity(jsonx.GetText(params, "level")) >= least
}

// Severity returns the rank of a log level, or -1 if level is not one.
func Severity(level string) int {
	for i, l := range [...]string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"} {
		if l == level {
			return i
		}
	}
	return -1
}
