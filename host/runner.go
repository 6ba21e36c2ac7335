package host

import (
	"context"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/usher-mcp/usher/config"
)

// How long a start may hold its slot. A child that has not answered by then is
// waiting rather than working, and must not keep others from starting.
const (
	directSlot = 3 * time.Second
	runnerSlot = 15 * time.Second
)

// slots bounds how many children start at once.
type slots chan struct{}

// take waits for a slot; the returned function gives it back, which happens by
// itself after limit.
func (s slots) take(ctx context.Context, limit time.Duration) (release func(), err error) {
	select {
	case s <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	t := time.AfterFunc(limit, func() { <-s })
	return func() {
		if t.Stop() {
			<-s
		}
	}, nil
}

// startSlot waits until srv may start. Only children are counted: a URL costs this
// machine nothing.
func (h *Host) startSlot(ctx context.Context, srv config.Server) (release func(), err error) {
	switch {
	case srv.Transport != config.TransportStdio:
		return func() {}, nil
	case isRunner(srv.Command, srv.Args):
		return h.runners.take(ctx, runnerSlot)
	}
	return h.starts.take(ctx, directSlot)
}

// isRunner reports whether a command fetches a package before it runs it.
func isRunner(command string, args []string) bool {
	name := strings.ToLower(path.Base(strings.ReplaceAll(command, `\`, "/")))
	for _, ext := range []string{".exe", ".cmd", ".bat", ".ps1"} {
		name = strings.TrimSuffix(name, ext)
	}
	verb := firstWord(args)
	switch name {
	case "npx", "uvx", "bunx", "pnpx", "dnx":
		return true
	case "pnpm", "yarn":
		return verb == "dlx"
	case "npm":
		return verb == "exec" || verb == "x"
	case "bun":
		return verb == "x"
	case "uv":
		return verb == "run" || verb == "tool"
	case "pipx", "docker", "podman", "nerdctl", "go", "deno", "dotnet":
		return verb == "run"
	case "cmd": // cmd /c npx … on Windows
		i := slices.IndexFunc(args, func(a string) bool { return strings.EqualFold(a, "/c") })
		return i >= 0 && i+1 < len(args) && isRunner(args[i+1], args[i+2:])
	}
	return false
}

// firstWord is the first argument that is no flag.
func firstWord(args []string) string {
	for _, a := range args {
		if !strings.HasPrefix(a, "-") {
			return a
		}
	}
	return ""
}
