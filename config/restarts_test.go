package config

import (
	"strings"
	"testing"
)

// A file that says 0 restarts gets none, also after the defaults are filled in and
// after the definition was written and read again.
func TestNoRestarts(t *testing.T) {
	s := loadText(t, `{"mcpServers": {"a": {"command": "x", "supervision": {"maxRestarts": 0}}}}`).Servers[0]
	if got := s.WithDefaults().Supervision.RestartLimit(); got != 0 {
		t.Errorf("%d restarts, want 0", got)
	}
	text, err := s.Entry()
	if err != nil || !strings.Contains(string(text), `"maxRestarts":0`) {
		t.Errorf("entry %s, %v", text, err)
	}
	if got := (Server{Command: "x"}).WithDefaults().Supervision.RestartLimit(); got != DefaultMaxRestarts {
		t.Errorf("%d restarts without a setting, want %d", got, DefaultMaxRestarts)
	}
	text, err = (Server{Name: "a", Command: "x"}).Entry()
	if err != nil || strings.Contains(string(text), "maxRestarts") {
		t.Errorf("entry %s, %v", text, err)
	}
}
