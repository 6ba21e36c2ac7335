package supervise

import (
	"context"
	"path"
	"slices"
	"strings"
	"time"
)

// Slots bounds how many children start at once.
type Slots chan struct{}

// Take waits for a slot; the returned function gives it back, which happens by
// itself after limit.
func (s Slots) Take(ctx context.Context, limit time.Duration) (release func(), err error) {
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

// IsRunner reports whether a command fetches a package before it runs it.
func IsRunner(command string, args []string) bool {
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
		return i >= 0 && i+1 < len(args) && IsRunner(args[i+1], args[i+2:])
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
