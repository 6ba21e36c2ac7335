package clients

import (
	"path"
	"slices"
	"strings"
)

// program finds out which package a command line runs, behind npx, uvx and
// the like: its name without a version, and the arguments it is given.
func program(command string, args []string) (name string, rest []string) {
	name = baseName(command)
	switch name {
	case "cmd":
		if len(args) > 1 && strings.EqualFold(args[0], "/c") {
			return program(args[1], args[2:])
		}
	case "npx", "bunx", "pnpx", "uvx":
		return runner(name, args)
	case "npm", "pnpm", "yarn", "bun", "pipx":
		if len(args) > 0 && slices.Contains([]string{"dlx", "exec", "x", "run"}, args[0]) {
			return runner(name, args[1:])
		}
	case "uv":
		if len(args) > 1 && args[0] == "tool" && args[1] == "run" {
			return runner(name, args[2:])
		}
	case "node":
		if len(args) > 0 {
			for _, known := range []string{"mcp-remote", "supergateway"} {
				if strings.Contains(strings.ReplaceAll(args[0], `\`, "/"), "/"+known+"/") {
					return known, args[1:]
				}
			}
		}
	}
	return name, args
}

// runner skips the options of a package runner. One that is not known, such
// as npx -c, makes the runner itself the program.
func runner(name string, args []string) (string, []string) {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case slices.Contains([]string{"-y", "--yes", "-q", "--quiet", "--silent", "--prefer-offline", "--"}, a):
		case slices.Contains([]string{"-p", "--package", "--from", "--with", "--python"}, a):
			i++
		case strings.HasPrefix(a, "--package=") || strings.HasPrefix(a, "--from=") || strings.HasPrefix(a, "--with="):
		case strings.HasPrefix(a, "-"):
			return name, args
		default:
			return withoutVersion(a), args[i+1:]
		}
	}
	return name, args
}

// withoutVersion strips @1.2.3, @latest and ==1.2.3 from a package.
func withoutVersion(pkg string) string {
	pkg, _, _ = strings.Cut(pkg, "==")
	if i := strings.LastIndexByte(pkg, '@'); i > 0 {
		return pkg[:i]
	}
	return pkg
}

// baseName is the last element of a path of either kind of system, without
// the endings of Windows.
func baseName(command string) string {
	name := strings.ToLower(path.Base(strings.ReplaceAll(command, `\`, "/")))
	for _, ext := range []string{".exe", ".cmd", ".bat", ".ps1"} {
		name = strings.TrimSuffix(name, ext)
	}
	return name
}

// isUsher reports a command line that starts usher's own gateway: taking it in
// would make usher its own server.
func isUsher(command string, args []string) bool {
	name, rest := program(command, args)
	return name == "usher" && len(rest) > 0 && rest[0] == "serve"
}
