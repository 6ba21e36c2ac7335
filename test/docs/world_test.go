package docs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/usher-mcp/usher/internal/person"
)

// world is the machine that the commands of one page are typed on.
type world struct {
	home  string // ~
	work  string // the working directory, kept from command to command
	state string // variables, kept from command to command
	last  int    // exit code of the last command
	token string // stands for the person who types
}

func newWorld(t *testing.T) *world {
	t.Helper()
	home, err := newHome()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{home: home, state: filepath.Join(t.TempDir(), "state")}
	t.Cleanup(w.end)
	w.work = filepath.Join(w.home, "project")
	for path, text := range map[string]string{
		filepath.Join(w.home, "notes", "today.md"): "buy milk\n",
		filepath.Join(w.home, "notes", "plan.md"):  "sleep\n",
		filepath.Join(w.work, ".git", "HEAD"):      "",
		w.state:                                    "",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.token, err = person.NewToken(filepath.Join(w.home, ".config", "usher"))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// end stops the servers that setup started, whose ids it wrote to ~/.pids, and
// removes the home.
func (w *world) end() {
	ids, _ := os.ReadFile(filepath.Join(w.home, ".pids")) // most pages start none
	for id := range strings.FieldsSeq(string(ids)) {
		if n, err := strconv.Atoi(id); err == nil && n > 1 {
			if p, err := os.FindProcess(n); err == nil {
				_ = p.Signal(os.Interrupt)
			}
		}
	}
	os.RemoveAll(w.home)
}

// shownHome is what the pages call the home directory.
const shownHome = "/home/me"

// newHome makes a home directory whose path is as long as shownHome, where that can
// be, so that tables are as wide as the pages show them. A short path is needed
// anyway, since there are sockets below it.
func newHome() (string, error) {
	for {
		dir := filepath.Join(os.TempDir(), fmt.Sprintf("%03x", rand.IntN(0x1000)))
		if err := os.Mkdir(dir, 0o700); !errors.Is(err, fs.ErrExist) {
			return dir, err
		}
	}
}

func (w *world) env() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + w.home, "TMPDIR=" + os.TempDir(), "TZ=UTC", "LANG=C.UTF-8", "BROWSER=visit",
		"GORACE=atexit_sleep_ms=0", "WORLD_STATE=" + w.state, person.TokenVariable + "=" + w.token,
	}
}

// commandLimit is for commands that hang; none should take seconds.
const commandLimit = 2 * time.Minute

// run types a command into a shell and returns all that it prints, as on a
// terminal. Directory, variables and exit code go on from the last command.
func (w *world) run(ctx context.Context, command string) (string, error) {
	const script = `. "$WORLD_STATE"; (exit "$1"); eval "$2
"; code=$?; export -p > "$WORLD_STATE"; pwd > "$WORLD_STATE.dir"; exit $code`
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", script, "sh", strconv.Itoa(w.last), command)
	cmd.Dir, cmd.Env = w.work, w.env()
	cmd.WaitDelay = 5 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	w.last = 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		w.last, err = exit.ExitCode(), nil
	}
	if dir, readErr := os.ReadFile(w.state + ".dir"); readErr == nil {
		w.work = strings.TrimSuffix(string(dir), "\n")
	}
	bin, _, _ := strings.Cut(os.Getenv("PATH"), string(os.PathListSeparator)) // where testscript put the commands
	return strings.NewReplacer(w.home, shownHome, bin, "/usr/bin").Replace(out.String()), err
}

// prepare runs the commands of a setup comment, or writes the file that a block
// shows.
func (w *world) prepare(ctx context.Context, b Block) error {
	if path, ok := b.Attrs["file"]; ok {
		if rest, below := strings.CutPrefix(path, "~/"); below {
			path = filepath.Join(w.home, rest)
		} else {
			path = filepath.Join(w.work, path)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		return os.WriteFile(path, []byte(b.Text()), 0o600)
	}
	if b.Lang != "setup" {
		return nil
	}
	out, err := w.run(ctx, "set -e\n"+b.Text())
	if err == nil && w.last != 0 {
		err = fmt.Errorf("setup ended with code %d", w.last)
	}
	w.last = 0
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}
