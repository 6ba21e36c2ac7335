package sqlstore

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/test/need"
)

// storageCalls are the system calls that change files. Names that a machine does
// not have are left out by strace.
var storageCalls = []string{
	"write", "pwrite64", "writev", "pwritev", "fsync", "fdatasync", "ftruncate", "fallocate", "rename", "renameat", "renameat2",
	"unlink", "unlinkat", "link", "linkat", "mkdir", "mkdirat", "openat", "fchmod", "fchmodat", "fcntl",
}

// savesTraced is how many logins a traced child saves.
const savesTraced = 3

// tracer runs children under strace.
type tracer struct {
	t      *testing.T
	strace string
	path   string // the store
}

func newTracer(t *testing.T, full bool) *tracer {
	t.Helper()
	tr := &tracer{t: t, strace: need.Strace(t), path: filepath.Join(t.TempDir(), "state", "usher.db")}
	if full {
		furnished(t, tr.path)
	}
	return tr
}

// reset puts the store back to what it was when saved was read.
func (tr *tracer) reset(saved map[string][]byte) {
	tr.t.Helper()
	dir := filepath.Dir(tr.path)
	if err := os.RemoveAll(dir); err != nil {
		tr.t.Fatal(err)
	}
	if len(saved) == 0 {
		return
	}
	if err := os.Mkdir(dir, dirMode); err != nil {
		tr.t.Fatal(err)
	}
	for name, data := range saved {
		if err := os.WriteFile(filepath.Join(dir, name), data, fileMode); err != nil {
			tr.t.Fatal(err)
		}
	}
}

// read returns the files of the store.
func (tr *tracer) read() map[string][]byte {
	tr.t.Helper()
	files := map[string][]byte{}
	names, _ := filepath.Glob(filepath.Join(filepath.Dir(tr.path), "*")) // the pattern is fine
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			tr.t.Fatal(err)
		}
		files[filepath.Base(name)] = data
	}
	return files
}

// run runs a child that saves, with strace's options, and returns what it said and
// whether it was killed.
func (tr *tracer) run(options ...string) (said string, killed bool) {
	tr.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		tr.t.Fatal(err)
	}
	args := append([]string{"-f", "-qq", "-o", tr.log(), "-e", "signal=none"}, options...)
	cmd := exec.CommandContext(tr.t.Context(), tr.strace, append(args, exe)...)
	cmd.Env = append(os.Environ(), childMode+"=save", childStore+"="+tr.path, childSaves+"="+fmt.Sprint(savesTraced),
		"GORACE=atexit_sleep_ms=0")
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	err = cmd.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		tr.t.Fatal(err)
	}
	if err != nil && cmd.ProcessState.ExitCode() > 0 {
		tr.t.Fatalf("%v: %v\n%s", options, err, problems.String())
	}
	return out.String(), err != nil
}

func (tr *tracer) log() string { return filepath.Join(filepath.Dir(filepath.Dir(tr.path)), "trace") }

// point is the nth call of a kind that one thread makes.
type point struct {
	call string
	n    int
}

var tracedCall = regexp.MustCompile(`(?m)^(\d+) +(\w+)\(`)

// points lists what there is to break while a child saves, in the order of calls.
func (tr *tracer) points(calls []string, options ...string) []point {
	tr.t.Helper()
	said, killed := tr.run(append(options, "-e", "trace="+optional(calls))...)
	if saved, gaveUp := lastSaid(tr.t, said, -1); killed || gaveUp != "" || saved < savesTraced {
		tr.t.Fatalf("an undisturbed child said %q", said)
	}
	log, err := os.ReadFile(tr.log())
	if err != nil {
		tr.t.Fatal(err)
	}
	counts := map[string]map[string]int{} // by call and thread
	for _, m := range tracedCall.FindAllSubmatch(log, -1) {
		thread, call := string(m[1]), string(m[2])
		if counts[call] == nil {
			counts[call] = map[string]int{}
		}
		counts[call][thread]++
	}
	var all []point
	for _, call := range slices.Sorted(maps.Keys(counts)) {
		for n := range slices.Max(slices.Collect(maps.Values(counts[call]))) {
			all = append(all, point{call, n + 1})
		}
	}
	return all
}

func optional(calls []string) string { return "?" + strings.Join(calls, ",?") }

// sample is all points for a proof, else about that many, spread evenly.
func sample(all []point, about int) []point {
	if need.Proof() || len(all) <= about {
		return all
	}
	var some []point
	for i := range about {
		some = append(some, all[i*len(all)/about])
	}
	return some
}

// A process that dies at any system call of opening the store, making its key and
// saving leaves the old or the new login, whether the store was there or not.
func TestKilledAtEveryCall(t *testing.T) {
	for _, tt := range []struct {
		name   string
		full   bool
		before int
		about  int
	}{{"new store", false, 0, 14}, {"store in use", true, 1, 14}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tr := newTracer(t, tt.full)
			start := tr.read()
			all := tr.points(storageCalls)
			some, kills := sample(all, tt.about), 0
			for _, p := range some {
				tr.reset(start)
				said, killed := tr.run("-e", "trace="+p.call, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", p.call, p.n))
				saved, gaveUp := lastSaid(t, said, tt.before)
				if gaveUp != "" || !killed && saved != tt.before+savesTraced {
					t.Fatalf("%v: killed %v, said %q", p, killed, said)
				}
				if killed {
					kills++
				}
				checkSaved(t, tr.path, saved, tt.full)
			}
			if kills < len(some)/2 {
				t.Errorf("only %d of %d points killed anything", kills, len(some))
			}
			t.Logf("killed at %d of %d system calls, nothing lost", kills, len(all))
		})
	}
}

// A disk that fails once, at any call, costs nothing; one that goes on failing is
// reported, and what was saved stays.
func TestFailingDisk(t *testing.T) {
	for _, tt := range []struct {
		name, fault string
		calls       []string
		about       int
	}{
		{"full", "ENOSPC", []string{"pwrite64", "ftruncate", "fallocate", "openat"}, 6},
		{"broken", "EIO", []string{"pwrite64", "pread64", "fsync", "fdatasync", "ftruncate", "unlink", "unlinkat"}, 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tr := newTracer(t, true)
			start := tr.read()
			var only []string // the child's own output and the rest of the machine stay sound
			for _, file := range append(companions(tr.path), filepath.Dir(tr.path)) {
				only = append(only, "-P", file)
			}
			all := tr.points(tt.calls, only...)
			gaveUps := 0
			for _, p := range sample(all, tt.about) {
				for _, when := range []string{fmt.Sprint(p.n), fmt.Sprintf("%d+", p.n)} {
					tr.reset(start)
					inject := fmt.Sprintf("inject=%s:error=%s:when=%s", p.call, tt.fault, when)
					said, killed := tr.run(append(only, "-e", "trace="+p.call, "-e", inject)...)
					saved, gaveUp := lastSaid(t, said, 1)
					if killed {
						t.Fatalf("%s: the child crashed, after %q", inject, said)
					}
					once := !strings.HasSuffix(when, "+")
					if once && (gaveUp != "" || saved != 1+savesTraced) {
						t.Errorf("%s: one fault was not overcome: %q", inject, said)
					}
					if gaveUp != "" {
						gaveUps++
					} else if saved != 1+savesTraced {
						t.Errorf("%s: neither saved nor reported: %q", inject, said)
					}
					checkSaved(t, tr.path, saved, true)
				}
			}
			if gaveUps == 0 {
				t.Error("no lasting fault was ever reported; the test tests nothing")
			}
			t.Logf("%d points, %d lasting faults reported, nothing lost", len(all), gaveUps)
		})
	}
}
