package person

import (
	"path"
	"strings"
)

// ChildVariable is set in the environment of every server that usher starts.
const ChildVariable = "USHER_CHILD"

// marker is a variable that an agent sets for the commands it runs. Variables that
// people set themselves (CODEX_HOME, CLINE_API_KEY), and those that an editor sets in
// every terminal (CURSOR_TRACE_ID, VSCODE_PID), are not among them.
type marker struct{ variable, agent string }

func markers() []marker {
	return []marker{
		{ChildVariable, "a server that usher runs"},
		{"CLAUDECODE", "Claude Code"},
		{"CLAUDE_CODE_ENTRYPOINT", "Claude Code"},
		{"CODEX_SANDBOX", "Codex"},
		{"CODEX_SANDBOX_NETWORK_DISABLED", "Codex"},
		{"CODEX_THREAD_ID", "Codex"},
		{"CODEX_CI", "Codex"},
		{"GEMINI_CLI", "Gemini CLI"},
		{"QWEN_CODE", "Qwen Code"},
		{"CURSOR_AGENT", "Cursor"},
		{"COPILOT_CLI", "GitHub Copilot"},
		{"COPILOT_AGENT", "GitHub Copilot"},
		{"CLINE_ACTIVE", "Cline"},
		{"OPENCODE", "opencode"},
		{"OPENCODE_CLIENT", "opencode"},
		{"AMP_CURRENT_THREAD_ID", "Amp"},
		{"GOOSE_TERMINAL", "Goose"},
		{"AUGMENT_AGENT", "Augment"},
		{"ANTIGRAVITY_AGENT", "Antigravity"},
		{"TRAE_AI_SHELL_ID", "Trae"},
		{"CRUSH", "Crush"},
		{"PI_CODING_AGENT", "Pi"},
		// What several agents have agreed on.
		{"AI_AGENT", "a coding agent"},
		{"AGENT", "a coding agent"},
	}
}

// Markers are the variables by which agents are recognised.
func Markers() []string {
	var out []string
	for _, m := range markers() {
		out = append(out, m.variable)
	}
	return out
}

// Agent names the agent whose environment this is; empty when none is recognised.
func Agent(lookup func(string) (string, bool)) string {
	for _, m := range markers() {
		if v, ok := lookup(m.variable); ok && says(v) {
			return m.agent
		}
	}
	return ""
}

// says reports whether a value switches its variable on.
func says(value string) bool {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "", "0", "false", "no", "off":
		return false
	}
	return true
}

// programs maps the names of agents' programs to the agents. Editors with an agent in them
// are not listed: a person uses their terminals too.
func programs() map[string]string {
	return map[string]string{
		"aider": "Aider", "amp": "Amp", "auggie": "Augment", "claude": "Claude Code", "codex": "Codex", "copilot": "GitHub Copilot",
		"crush": "Crush", "cursor-agent": "Cursor", "droid": "Factory", "gemini": "Gemini CLI", "goose": "Goose", "opencode": "opencode",
		"qwen": "Qwen Code",
	}
}

// packages maps paths of scripts, below the directory of a package manager, to the agents.
func packages() map[string]string {
	return map[string]string{
		"/@anthropic-ai/claude-code/": "Claude Code", "/@openai/codex/": "Codex", "/@google/gemini-cli/": "Gemini CLI",
		"/@qwen-code/qwen-code/": "Qwen Code", "/@github/copilot/": "GitHub Copilot", "/@sourcegraph/amp/": "Amp",
		"/@augmentcode/auggie/": "Augment", "/node_modules/opencode-ai/": "opencode", "/@mariozechner/pi-coding-agent/": "Pi", "/node_modules/cline/": "Cline",
	}
}

// Program names the agent whose process has this name and command line; empty when none is
// recognised. The script of an interpreter counts as its program.
func Program(name string, args []string) string {
	candidates := []string{name}
	if len(args) > 0 {
		candidates = append(candidates, args[0])
	}
	script := ""
	if len(args) > 0 && interpreter(path.Base(args[0])) {
		script = firstOperand(args[1:])
		candidates = append(candidates, script)
	}
	known := programs()
	for _, c := range candidates {
		base := path.Base(c)
		base, _, _ = strings.Cut(base, "-x86_64") // names of downloads have the platform in them
		base, _, _ = strings.Cut(base, "-aarch64")
		for _, suffix := range []string{".js", ".mjs", ".cjs", ".py"} {
			base = strings.TrimSuffix(base, suffix)
		}
		if agent := known[base]; agent != "" {
			return agent
		}
	}
	script = "/" + strings.TrimPrefix(script, "npm:") + "/" // a package runner gets the name only
	for dir, agent := range packages() {
		if strings.Contains(script, dir) {
			return agent
		}
	}
	return ""
}

// interpreter reports whether a program runs the script that is its first operand.
func interpreter(base string) bool {
	switch base {
	case "node", "nodejs", "bun", "deno":
		return true
	}
	return strings.HasPrefix(base, "python")
}

// firstOperand is the first argument that is not an option, the value of one, or the
// subcommand that runs a script.
func firstOperand(args []string) string {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case takesValue(a):
			i++
		case !strings.HasPrefix(a, "-") && a != "run" && a != "x":
			return a
		}
	}
	return ""
}

// takesValue reports whether the value of an interpreter's option is the next argument.
func takesValue(option string) bool {
	switch option {
	case "-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions", "-X", "-W":
		return true
	}
	return false
}
