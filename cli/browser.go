package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os/exec"
	"runtime"
	"strings"

	"github.com/cli/browser"

	"github.com/usher-mcp/usher/auth"
)

// interactive is the permission to open a browser. It is made only for a command
// that a person has typed.
func (a *app) interactive() auth.Interactive {
	return auth.NewInteractive(func(ctx context.Context, address string) error {
		return OpenBrowser(ctx, a.io.env("BROWSER"), address)
	})
}

// OpenBrowser opens an address with program, the value of $BROWSER, or as the
// system does it when that is empty. The address is one argument and never passes
// through a shell.
func OpenBrowser(ctx context.Context, program, address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("only web addresses are opened")
	}
	address = u.String()
	words := strings.Fields(program)
	if len(words) == 0 {
		browser.Stdout, browser.Stderr = io.Discard, io.Discard
		return browser.OpenURL(address)
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), words[0], append(words[1:], address)...)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("BROWSER=%s: %w", words[0], err)
	}
	return nil
}

// hasBrowser guesses whether a browser can be opened where the person is: not over
// SSH, and on Linux only in a graphical session. $BROWSER says so outright.
func (a *app) hasBrowser() bool {
	switch {
	case a.io.env("BROWSER") != "":
		return true
	case a.io.env("SSH_CONNECTION") != "" || a.io.env("SSH_TTY") != "":
		return false
	case runtime.GOOS == "darwin" || runtime.GOOS == "windows":
		return true
	}
	return a.io.env("DISPLAY") != "" || a.io.env("WAYLAND_DISPLAY") != ""
}
