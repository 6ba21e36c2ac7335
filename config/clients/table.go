package clients

import (
	"path/filepath"
	"slices"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/clients/syntax"
)

// client is one program whose file is known.
type client struct {
	name   string
	title  string
	format syntax.Format
	keys   [][]string // where the servers stand; the first one is written
	user   func(p places) []string
	// project are paths inside a project, for clients that have such.
	project []string
	dialect dialect
	read    func(*entry)
	// file, if set, reads what else a file says about servers.
	file  func(*reading)
	write func(*exporting, config.Server) syntax.Object
	wrap  func(*exporting, syntax.Object) syntax.Object // other keys of an exported file
	list  bool                                          // the servers are a list of objects with a name
}

// location is where the client's file keeps its servers, for editing.
func (c client) location() syntax.Location {
	return syntax.Location{Format: c.format, Keys: c.keys[0], List: c.list}
}

// places derives paths from the system.
type places struct{ config.System }

func (p places) home(elem ...string) string {
	return filepath.Join(append([]string{p.Home}, elem...)...)
}

// xdg is the directory for settings on Linux; many clients use it everywhere.
func (p places) xdg(elem ...string) string {
	base := p.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(base) {
		base = p.home(".config")
	}
	return filepath.Join(append([]string{base}, elem...)...)
}

// app is the directory for settings of desktop programs.
func (p places) app(elem ...string) string {
	base := p.xdg()
	switch p.GOOS {
	case "darwin":
		base = p.home("Library", "Application Support")
	case "windows":
		if base = p.Getenv("APPDATA"); base == "" {
			base = p.home("AppData", "Roaming")
		}
	}
	return filepath.Join(append([]string{base}, elem...)...)
}

// env is a directory named by a variable, or a fallback.
func (p places) env(variable, fallback string) string {
	if dir := p.Getenv(variable); dir != "" {
		return dir
	}
	return fallback
}

// table lists the clients in the order in which the first of several equal
// servers is kept.
func table() []client {
	return slices.Concat(editorClients(), agentClients(), otherClients())
}

func editorClients() []client {
	mcpServers := [][]string{{"mcpServers"}}
	return []client{
		{
			name: "claude", title: "Claude Desktop", keys: mcpServers, dialect: literalDialect, read: readStandard, write: writeClaude,
			user: func(p places) []string {
				file := "claude_desktop_config.json"
				list := []string{p.app("Claude", file)}
				if p.GOOS != "darwin" && p.GOOS != "windows" {
					list = append(list, p.app("claude", file))
				}
				return list
			},
		},
		{
			name: "claude-code", title: "Claude Code", keys: mcpServers, dialect: shellDialect, read: readClaudeCode, file: readClaudeProjects, write: writeClaudeCode,
			user: func(p places) []string {
				return []string{filepath.Join(p.env("CLAUDE_CONFIG_DIR", p.Home), ".claude.json")}
			},
		},
		{
			name: "cursor", title: "Cursor", keys: mcpServers, dialect: editorDialect, read: readCursor, write: writeCursor,
			user:    func(p places) []string { return []string{p.home(".cursor", "mcp.json")} },
			project: []string{".cursor/mcp.json"},
		},
		{
			name: "vscode", title: "VS Code", keys: [][]string{{"servers"}, {"mcp", "servers"}}, dialect: editorDialect,
			read: readVSCode, file: readInputs, write: writeVSCode, wrap: wrapVSCode,
			user: func(p places) []string {
				var list []string
				for _, edition := range []string{"Code", "Code - Insiders"} {
					list = append(list, p.app(edition, "User", "mcp.json"))
					profiles, _ := filepath.Glob(p.app(edition, "User", "profiles", "*", "mcp.json")) // the pattern is valid
					list = append(list, profiles...)
				}
				return list
			},
			project: []string{".vscode/mcp.json"},
		},
	}
}

func agentClients() []client {
	mcpServers := [][]string{{"mcpServers"}}
	return []client{
		{
			name: "codex", title: "Codex", format: syntax.TOML, keys: [][]string{{"mcp_servers"}}, dialect: literalDialect, read: readCodex, write: writeCodex,
			user: func(p places) []string {
				return []string{filepath.Join(p.env("CODEX_HOME", p.home(".codex")), "config.toml")}
			},
			project: []string{".codex/config.toml"},
		},
		{
			name: "gemini", title: "Gemini CLI", keys: mcpServers, dialect: dollarDialect, read: readGemini, file: readGeminiLists, write: writeGemini,
			user:    func(p places) []string { return []string{p.home(".gemini", "settings.json")} },
			project: []string{".gemini/settings.json"},
		},
		{
			name: "opencode", title: "opencode", keys: [][]string{{"mcp"}}, dialect: opencodeDialect, read: readOpencode, file: readOpencodeTools, write: writeOpencode, wrap: wrapOpencode,
			user: func(p places) []string {
				dir := p.env("OPENCODE_CONFIG_DIR", p.xdg("opencode"))
				list := []string{filepath.Join(dir, "opencode.json"), filepath.Join(dir, "opencode.jsonc")}
				if file := p.Getenv("OPENCODE_CONFIG"); file != "" {
					list = append(list, file)
				}
				return list
			},
			project: []string{"opencode.json", "opencode.jsonc"},
		},
		{
			name: "zed", title: "Zed", keys: [][]string{{"context_servers"}}, dialect: literalDialect, read: readZed, write: writeZed,
			user: func(p places) []string {
				if p.GOOS == "windows" {
					return []string{p.app("Zed", "settings.json")}
				}
				return []string{p.xdg("zed", "settings.json")}
			},
			project: []string{".zed/settings.json"},
		},
		{
			name: "goose", title: "goose", format: syntax.YAML, keys: [][]string{{"extensions"}}, dialect: literalDialect, read: readGoose, write: writeGoose,
			user: func(p places) []string {
				if p.GOOS == "windows" {
					return []string{p.app("Block", "goose", "config", "config.yaml")}
				}
				return []string{p.xdg("goose", "config.yaml")}
			},
		},
		{
			name: "windsurf", title: "Windsurf", keys: mcpServers, dialect: editorDialect, read: readStandard, write: writeWindsurf,
			user: func(p places) []string {
				return []string{p.home(".codeium", "windsurf", "mcp_config.json"), p.home(".codeium", "mcp_config.json")}
			},
		},
		{
			name: "copilot", title: "Copilot CLI", keys: mcpServers, dialect: dollarDialect, read: readCopilot, write: writeCopilot,
			user: func(p places) []string { return []string{p.home(".copilot", "mcp-config.json")} },
		},
	}
}

// otherClients differ from the usual shape in their place only, or nearly so.
func otherClients() []client {
	storage := func(extension, file string) func(places) []string {
		return func(p places) []string {
			return []string{p.app("Code", "User", "globalStorage", extension, "settings", file)}
		}
	}
	at := func(elem ...string) func(places) []string {
		return func(p places) []string { return []string{p.home(elem...)} }
	}
	usual := func(name, title string, d dialect, user func(places) []string, project ...string) client {
		return client{name: name, title: title, keys: [][]string{{"mcpServers"}}, dialect: d, read: readStandard, write: writeStandard, user: user, project: project}
	}
	keyed := func(c client, format syntax.Format, keys ...string) client {
		c.format, c.keys = format, [][]string{keys}
		return c
	}
	listed := func(c client) client {
		c.list = true
		return c
	}
	in := func(c client, tag, streamable, urlKey string) client {
		c.write = writeAs(tag, streamable, urlKey)
		return c
	}
	return []client{
		in(usual("antigravity", "Antigravity", literalDialect, func(p places) []string {
			return []string{p.home(".gemini", "antigravity", "mcp_config.json"), p.home(".gemini", "config", "mcp_config.json")}
		}), "", "", "serverUrl"),
		in(usual("cline", "Cline", literalDialect, storage("saoudrizwan.claude-dev", "cline_mcp_settings.json")), "type", "streamableHttp", "url"),
		in(usual("roo", "Roo Code", editorDialect, storage("rooveterinaryinc.roo-cline", "mcp_settings.json"), ".roo/mcp.json"), "type", "streamable-http", "url"),
		usual("lmstudio", "LM Studio", literalDialect, at(".lmstudio", "mcp.json")),
		usual("kiro", "Kiro", shellDialect, at(".kiro", "settings", "mcp.json"), ".kiro/settings/mcp.json"),
		usual("trae", "Trae", literalDialect, func(p places) []string { return []string{p.app("Trae", "User", "mcp.json")} }),
		usual("factory", "Factory", shellDialect, at(".factory", "mcp.json")),
		usual("kimi", "Kimi", literalDialect, at(".kimi", "mcp.json")),
		in(listed(keyed(usual("continue", "Continue", continueDialect, at(".continue", "config.yaml")), syntax.YAML, "mcpServers")), "type", "streamable-http", "url"),
		keyed(usual("crush", "Crush", crushDialect, func(p places) []string { return []string{p.xdg("crush", "crush.json")} }, ".crush.json"), syntax.JSON, "mcp"),
		keyed(usual("amp", "Amp", shellDialect, func(p places) []string { return []string{p.xdg("amp", "settings.json")} }), syntax.JSON, "amp.mcpServers"),
		in(listed(keyed(usual("vibe", "Mistral Vibe", literalDialect, func(p places) []string {
			return []string{filepath.Join(p.env("VIBE_HOME", p.home(".vibe")), "config.toml")}
		}, ".vibe/config.toml"), syntax.TOML, "mcp_servers")), "transport", "streamable-http", "url"),
		usual("mcp", "shared mcp.json", shellDialect, func(p places) []string {
			return []string{p.xdg("mcp", "mcp.json"), p.home(".agents", "mcp.json")}
		}),
	}
}

// Info names a client.
type Info struct {
	Name  string // as commands take it: "claude-code"
	Title string // as people call it: "Claude Code"
}

// List returns the clients that are known, in a fixed order.
func List() []Info {
	var out []Info
	for _, c := range table() {
		out = append(out, Info{c.name, c.title})
	}
	return out
}
