package cmdutil

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/cli/browser"

	"github.com/usher-mcp/usher/auth"
)

// Interactive is the permission to open a browser. It is made only for a command
// that a person has typed.
func Interactive(f *Factory) auth.Interactive {
	return auth.NewInteractive(func(ctx context.Context, address string) error {
		return OpenBrowser(ctx, f.IO.Env("BROWSER"), address)
	})
}

// OpenBrowser opens an address with program, the value of $BROWSER, or as the
// system does it when that is empty. The address is one argument and never passes
// through a shell.
func OpenBrowser(ctx context.Context, program, address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("only web URLs are opened")
	}
	address = u.String()
	words := strings.Fields(program)
	if len(words) == 0 {
		browser.Stdout, browser.Stderr = io.Discard, io.Discard
		return browser.OpenURL(address)
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), words[0], append(words[1:], address)...)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("BROWSER=%s: %w", words[0], err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	timer := time.NewTimer(browserPatience)
	defer timer.Stop()
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("BROWSER=%s: %w", words[0], err)
		}
	case <-ctx.Done():
	case <-timer.C:
	}
	return nil
}

// browserPatience is how long a program that opens a browser may take to fail. One
// that runs for longer is the browser itself: nobody waits for it to be closed.
const browserPatience = 3 * time.Second

// HasBrowser guesses whether a browser can be opened where the person is: not over
// SSH, and on Linux only in a graphical session. $BROWSER says so outright.
func HasBrowser(f *Factory) bool {
	switch {
	case f.IO.Env("BROWSER") != "":
		return true
	case f.IO.Env("SSH_CONNECTION") != "" || f.IO.Env("SSH_TTY") != "":
		return false
	case runtime.GOOS == "darwin" || runtime.GOOS == "windows":
		return true
	}
	return f.IO.Env("DISPLAY") != "" || f.IO.Env("WAYLAND_DISPLAY") != ""
}
