package torture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// home is a directory in which the program runs as if it were somebody's own.
type home struct {
	t   *trial
	dir string
}

// newHome makes one with a configuration.
func (t *trial) newHome(name string, servers map[string]any) (*home, error) {
	h := &home{t: t, dir: filepath.Join(t.dir, name)}
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		return nil, err
	}
	text, err := json.Marshal(map[string]any{"mcpServers": servers, "usher": map[string]string{"key": "file:" + filepath.Join(h.dir, "key")}})
	if err != nil {
		return nil, err
	}
	return h, os.WriteFile(filepath.Join(h.dir, "mcp.json"), text, 0o600)
}

// command is a run of the program there.
func (h *home) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(h.t.ctx, h.t.exe, args...)
	cmd.Dir = h.dir
	cmd.Env = append(os.Environ(), "USHER_HOME="+h.dir, "HOME="+h.dir, "NO_COLOR=1")
	return cmd
}

// run runs the program to its end and returns all that it said.
func (h *home) run(args ...string) (string, error) {
	var all bytes.Buffer
	cmd := h.command(args...)
	cmd.Stdout, cmd.Stderr = &all, &all
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("usher %s: %w", args[0], err)
	}
	return all.String(), err
}
