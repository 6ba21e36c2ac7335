package process

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestStartErrors(t *testing.T) {
	alone(t)
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	script := write("script", "no interpreter line\n", 0o755)
	orphan := write("orphan", "#!/nowhere/interpreter\n", 0o755)
	plain := write("plain", "text", 0o644)
	tests := []struct {
		name string
		opt  Options
		want string
		is   error
	}{
		{"missing", Options{Command: "no-such-program"}, `command "no-such-program" not found on PATH; install it or give a full path`, exec.ErrNotFound},
		{"missing path", Options{Command: "./nothing", Dir: dir}, `there is no ` + dir + `/nothing; install it or correct the path`, exec.ErrNotFound},
		{"not executable", Options{Command: plain}, "chmod +x", os.ErrPermission},
		{"not on PATH of child", Options{Command: "sh", Env: []string{"PATH=" + dir}}, "not found on PATH", exec.ErrNotFound},
		{"no PATH", Options{Command: "sh", Env: []string{}}, "not found on PATH", exec.ErrNotFound},
		{"script without interpreter", Options{Command: script}, "#! line", syscall.ENOEXEC},
		{"interpreter missing", Options{Command: orphan}, "interpreter", os.ErrNotExist},
		{"too large", Options{Command: "sh", Args: []string{strings.Repeat("x", 1<<18)}}, "shorten", syscall.E2BIG},
		{"directory missing", Options{Command: "sh", Dir: dir + "/none"}, "change cwd", os.ErrNotExist},
		{"directory is file", Options{Command: "sh", Dir: plain}, "not a directory", nil},
		{"empty", Options{}, "name a program", nil},
		{"NUL in argument", Options{Command: "sh", Args: []string{"a", "b\x00c"}}, "argument 2", nil},
		{"NUL in variable", Options{Command: "sh", Env: []string{"PATH=/bin", "A=\x00"}}, "variable A", nil},
		{"nameless variable", Options{Command: "sh", Env: []string{"PATH=/bin", "=x"}}, "NAME=value", nil},
	}
	for _, k := range kinds {
		before := descriptors(t)
		for _, tt := range tests {
			t.Run(k.name+"/"+tt.name, func(t *testing.T) {
				tt.opt.Shim = k.shim
				c, err := Start(t.Context(), tt.opt)
				if err == nil {
					c.Stop()
					t.Fatal("no error")
				}
				if !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error %q does not contain %q", err, tt.want)
				}
				if tt.is != nil && !errors.Is(err, tt.is) {
					t.Errorf("error %q is not %v", err, tt.is)
				}
			})
		}
		if after := descriptors(t); len(after) > len(before)+1 { // the poller's comes with the first use
			t.Errorf("descriptors before %v, after %v", before, after)
		}
		if left := childrenOf(t, os.Getpid()); len(left) > 0 {
			t.Errorf("children left: %v", left)
		}
	}
}

func TestStartCancelled(t *testing.T) {
	alone(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			_, err := Start(ctx, testOptions(mark(t), k.shim, "deaf"))
			if !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
			if left := childrenOf(t, os.Getpid()); len(left) > 0 {
				t.Errorf("children left: %v", left)
			}
		})
	}
}

// A program that is no shim is told so, not waited for.
func TestShimThatIsNone(t *testing.T) {
	_, err := Start(t.Context(), testOptions(mark(t), "/bin/true", "echo"))
	if err == nil || !strings.Contains(err.Error(), "shim") {
		t.Errorf("error %v", err)
	}
}
