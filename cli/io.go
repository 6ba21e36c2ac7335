package cli

import (
	"context"

	"github.com/usher-mcp/usher/cli/cmdutil"
)

// IO is the world a command sees. Tests give their own.
type IO = cmdutil.IO

// System returns the real world. It takes the secrets of usher out of the environment of
// the process, so that only commands that are given this IO find them.
func System() IO { return cmdutil.System() }

// OpenBrowser opens an address with a program, or with the system's own when that is
// empty.
func OpenBrowser(ctx context.Context, program, address string) error {
	return cmdutil.OpenBrowser(ctx, program, address)
}
