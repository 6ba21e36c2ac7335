package person

import "strings"

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
