package supervise

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestIsRunner(t *testing.T) {
	tests := []struct {
		command string
		args    []string
		want    bool
	}{
		{"npx", []string{"-y", "x"}, true},
		{"/usr/bin/npx", nil, true},
		{`C:\node\npx.cmd`, nil, true},
		{"uvx", nil, true},
		{"bunx", nil, true},
		{"pnpm", []string{"dlx", "x"}, true},
		{"pnpm", []string{"start"}, false},
		{"pipx", []string{"run", "x"}, true},
		{"docker", []string{"run", "-i", "x"}, true},
		{"docker", []string{"--context", "exec"}, false},
		{"uv", []string{"--quiet", "run", "x"}, true},
		{"npm", []string{"exec", "x"}, true},
		{"npm", []string{"start"}, false},
		{"yarn", []string{"dlx", "x"}, true},
		{"bun", []string{"x", "y"}, true},
		{"go", []string{"run", "."}, true},
		{"cmd", []string{"/c", "npx", "-y", "x"}, true},
		{"cmd", []string{"/C"}, false},
		{"cmd.exe", []string{"/c", "node", "x"}, false},
		{"node", []string{"npx"}, false},
		{"", nil, false},
	}
	for _, tt := range tests {
		if got := IsRunner(tt.command, tt.args); got != tt.want {
			t.Errorf("IsRunner(%q, %q) = %v", tt.command, tt.args, got)
		}
	}
}
