package clients

import (
	"path/filepath"
	"strings"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/clients/syntax"
)

// sniff decides whose file it is: by its place, then by its name, then by the
// keys and the shape of the entries.
func sniff(sys config.System, path string, tree map[string]any) (client, bool) {
	clean := filepath.Clean(path)
	for _, c := range table() {
		for _, at := range c.files(sys) {
			if filepath.Clean(at.path) == clean {
				return c, true
			}
		}
	}
	slashed := filepath.ToSlash(clean)
	for _, c := range table() {
		for _, name := range c.project {
			if strings.HasSuffix(slashed, "/"+name) {
				return c, true
			}
		}
	}
	return sniffTree(tree)
}

func sniffTree(tree map[string]any) (client, bool) {
	has := func(keys ...string) bool {
		list, ok := syntax.Lookup(tree, keys)
		return ok && list != nil
	}
	switch {
	case has("context_servers"):
		return byClient("zed")
	case has("extensions"):
		return byClient("goose")
	case has("mcp_servers"):
		if _, isList := tree["mcp_servers"].([]any); isList {
			return byClient("vibe")
		}
		return byClient("codex")
	case has("amp.mcpServers"):
		return byClient("amp")
	case has("servers"), has("mcp", "servers"):
		return byClient("vscode")
	case has("mcpServers"):
		return sniffServers(tree)
	case has("mcp"):
		list, _ := syntax.Lookup(tree, []string{"mcp"})
		for _, v := range list {
			m, _ := v.(map[string]any)
			if m["type"] == "local" || m["type"] == "remote" {
				return byClient("opencode")
			}
		}
		return byClient("crush")
	}
	return client{}, false
}

// sniffServers tells apart the many files that say mcpServers.
func sniffServers(tree map[string]any) (client, bool) {
	if _, isList := tree["mcpServers"].([]any); isList {
		return byClient("continue")
	}
	list, _ := syntax.Lookup(tree, []string{"mcpServers"})
	for _, v := range list {
		m, _ := v.(map[string]any)
		switch {
		case m["serverUrl"] != nil:
			return byClient("windsurf")
		case m["httpUrl"] != nil || m["includeTools"] != nil || m["excludeTools"] != nil:
			return byClient("gemini")
		case m["type"] == "local" || m["oauthClientId"] != nil:
			return byClient("copilot")
		case m["envFile"] != nil || mentions(m, "${env:"):
			return byClient("cursor")
		}
	}
	return byClient("claude-code")
}

// mentions searches the strings of a tree.
func mentions(v any, what string) bool {
	switch t := v.(type) {
	case string:
		return strings.Contains(t, what)
	case map[string]any:
		for _, e := range t {
			if mentions(e, what) {
				return true
			}
		}
	case []any:
		for _, e := range t {
			if mentions(e, what) {
				return true
			}
		}
	}
	return false
}

func byClient(name string) (client, bool) {
	for _, c := range table() {
		if c.name == name {
			return c, true
		}
	}
	return client{}, false
}
