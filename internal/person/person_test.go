package person

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	for _, name := range Markers() {
		_ = os.Unsetenv(name) // a developer's agent may run the tests
	}
	goleak.VerifyTestMain(m)
}

// lookup reads an environment written as NAME=value.
func lookup(env ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, e := range env {
			if key, value, _ := strings.Cut(e, "="); key == name {
				return value, true
			}
		}
		return "", false
	}
}

func TestCheck(t *testing.T) {
	dir, empty := t.TempDir(), t.TempDir()
	token, err := NewToken(dir)
	if err != nil {
		t.Fatal(err)
	}
	given := TokenVariable + "=" + token
	for name, tt := range map[string]struct {
		asker Asker
		want  error
	}{
		"a terminal":             {Asker{LookupEnv: lookup(), Terminal: true, Dir: empty}, nil},
		"nothing":                {Asker{LookupEnv: lookup(), Dir: dir}, ErrNeeded},
		"the token":              {Asker{LookupEnv: lookup(given), Dir: dir}, nil},
		"a token nobody made":    {Asker{LookupEnv: lookup(given), Dir: empty}, ErrNeeded},
		"no directory":           {Asker{LookupEnv: lookup(given)}, ErrNeeded},
		"another token":          {Asker{LookupEnv: lookup(given + "x"), Dir: dir}, ErrNeeded},
		"an empty token":         {Asker{LookupEnv: lookup(TokenVariable + "="), Dir: dir}, ErrNeeded},
		"an agent on a terminal": {Asker{LookupEnv: lookup("CLAUDECODE=1"), Terminal: true, Dir: dir}, ErrNeeded},
		"an agent with a token":  {Asker{LookupEnv: lookup("CODEX_SANDBOX=seatbelt", given), Dir: dir}, ErrNeeded},
		"a server of usher":      {Asker{LookupEnv: lookup(ChildVariable+"=1", given), Terminal: true, Dir: dir}, ErrNeeded},
	} {
		if err := tt.asker.Check(); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}

func TestAgent(t *testing.T) {
	for _, name := range Markers() {
		if Agent(lookup(name+"=1")) == "" {
			t.Errorf("%s=1 is not recognised", name)
		}
		for _, off := range []string{"", "0", "false"} {
			if got := Agent(lookup(name + "=" + off)); got != "" {
				t.Errorf("%s=%s is taken for %s", name, off, got)
			}
		}
	}
	for _, mine := range []string{"CODEX_HOME=/home/me/.codex", "CLINE_API_KEY=x", "CURSOR_TRACE_ID=x", "ANTHROPIC_API_KEY=x", "SSH_AGENT_PID=1", "CI=true"} {
		if got := Agent(lookup(mine)); got != "" {
			t.Errorf("%s is taken for %s", mine, got)
		}
	}
}

func TestProgram(t *testing.T) {
	for _, tt := range []struct {
		name, args, want string
	}{
		{"claude", "claude", "Claude Code"},
		{"node", "node /usr/bin/claude --resume", "Claude Code"},
		{"MainThread", "/usr/bin/node --no-warnings /usr/lib/node_modules/@google/gemini-cli/dist/index.js", "Gemini CLI"},
		{"codex", "/opt/codex/bin/codex exec", "Codex"},
		{"bun", "bun run /home/me/.bun/install/global/node_modules/opencode-ai/bin/x", "opencode"},
		{"python3.12", "python3.12 -u /home/me/.local/bin/aider", "Aider"},
		{"cursor-agent", "", "Cursor"},
		// Options of the interpreter that take a value do not hide the script.
		{"node", "node -r /tmp/x.js /usr/lib/node_modules/@anthropic-ai/claude-code/cli.js", "Claude Code"},
		{"node", "node --import tsx --require=./y.js /usr/bin/claude", "Claude Code"},
		{"python3", "python3 -X utf8 -W ignore /usr/bin/aider", "Aider"},
		{"python3", "python3 -m aider", "Aider"},
		{"deno", "deno run -A npm:@anthropic-ai/claude-code", "Claude Code"},
		{"bun", "bun x @openai/codex", "Codex"},
		{"codex-x86_64-un", "./codex-x86_64-unknown-linux-musl", "Codex"},
		// A person's own programs, also when they are about an agent.
		{"bash", "-bash", ""},
		{"vim", "vim claude", ""},
		{"grep", "grep -r codex /usr/lib/node_modules/@openai/codex/", ""},
		{"cursor", "/usr/share/cursor/cursor --type=zygote", ""},
		{"code", "/usr/share/code/code", ""},
		{"node", "node server.js claude", ""},
		{"node", "node -r claude server.js", ""},
		{"codex-notes", "codex-notes", ""},
		{"tmux: server", "tmux new -s claude", ""},
		{"", "", ""},
	} {
		if got := Program(tt.name, strings.Fields(tt.args)); got != tt.want {
			t.Errorf("Program(%q, %q) = %q, want %q", tt.name, tt.args, got, tt.want)
		}
	}
}

// The file may be written without usher, as sha256sum prints it.
func TestTokenFile(t *testing.T) {
	dir := t.TempDir()
	token := "a-long-value-of-a-pipeline"
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(TokenFile(dir), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(token)))
	for text, want := range map[string]bool{
		sum: true, sum + "  -\n": true, "": false, "\n": false, "zz": false, sum[:40]: false, token: false, strings.Repeat("a", 5000): false,
	} {
		write(text)
		if ValidToken(dir, token) != want {
			t.Errorf("%.80q: valid %v, want %v", text, !want, want)
		}
	}
	short := sha256.Sum256([]byte("1"))
	write(fmt.Sprintf("%x", short))
	if ValidToken(dir, "1") {
		t.Error("a token of one character is valid")
	}
	made, err := NewToken(filepath.Join(dir, "new"))
	if err != nil || !ValidToken(filepath.Join(dir, "new"), made) {
		t.Fatalf("a new token is not valid: %v", err)
	}
	if info, err := os.Stat(TokenFile(filepath.Join(dir, "new"))); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v; want mode 0600", info.Mode(), err)
	}
	if found, err := RemoveToken(filepath.Join(dir, "new")); !found || err != nil || ValidToken(filepath.Join(dir, "new"), made) {
		t.Errorf("after the removal: %v, %v", found, err)
	}
	if found, err := RemoveToken(filepath.Join(dir, "new")); found || err != nil {
		t.Errorf("removed twice: %v, %v", found, err)
	}
}
