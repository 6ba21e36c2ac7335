package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/process"
)

// commandTimeout bounds a ${cmd:…} placeholder.
const commandTimeout = 30 * time.Second

// lookup completes the sources of placeholders.
func (h *App) lookup(o *Options) config.Lookup {
	l := o.Lookup
	if l.Env == nil {
		l.Env = o.Load.System.LookupEnv
		if l.Env == nil {
			l.Env = os.LookupEnv
		}
	}
	if l.Secret == nil {
		l.Secret = h.secret
	}
	if l.Input == nil {
		l.Input = h.input(o.Prompt.Input)
	}
	if l.Command == nil {
		l.Command = h.runCommand
	}
	return l
}

// runCommand runs the command line of a ${cmd:…} placeholder, once the definition
// that holds it has been approved or stands in a trusted file.
func (h *App) runCommand(ctx context.Context, srv config.Server, command string) (string, error) {
	if err := h.approved(ctx, srv); err != nil {
		return "", err
	}
	ctx, stop := context.WithTimeout(ctx, commandTimeout)
	defer stop()
	shell := []string{"/bin/sh", "-c"}
	if runtime.GOOS == "windows" {
		shell = []string{"cmd", "/c"}
	}
	cmd := exec.CommandContext(ctx, shell[0], append(shell[1:], command)...)
	cmd.Env = process.SafeEnv(os.Environ(), nil)
	cmd.Dir = srv.BaseDir()
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("the command ended with code %d", exit.ExitCode())
	}
	return strings.TrimRight(string(out), "\r\n"), err
}
