// Package serverlog keeps what servers write to standard error: in memory across
// restarts, and in files when the process ends.
//
//	var logs serverlog.Buffers
//	opt.Stderr = logs.Of(key)
//	err := logs.Save(dir)           // at the end
//	lines, err := serverlog.Saved(dir, "github")
package serverlog

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/usher-mcp/usher/config/edit"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/process"
)

// Buffers hold the last lines of each account's server, across restarts. The zero value
// is ready to use.
type Buffers struct {
	mu sync.Mutex // guards by
	by map[host.Key]*process.Ring
}

// Of returns the buffer of an account; all its lanes share one.
func (r *Buffers) Of(k host.Key) *process.Ring {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[host.Key]*process.Ring{}
	}
	k = k.Shared()
	if r.by[k] == nil {
		r.by[k] = process.NewRing(process.DefaultStderrBytes)
	}
	return r.by[k]
}

// Drop forgets the lines of an account.
func (r *Buffers) Drop(k host.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.by, k.Shared())
}

// Save closes the buffers and writes those of the local user to dir, so that
// `usher logs` can show why a short-lived command failed.
func (r *Buffers) Save(dir string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for k, ring := range r.by {
		ring.Close()
		lines := ring.Lines()
		if len(lines) == 0 || k.Principal != host.Local {
			continue
		}
		name := k.Name()
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		var b strings.Builder
		for _, l := range lines {
			fmt.Fprintf(&b, "%s %s\n", l.Time.UTC().Format(time.RFC3339Nano), l.Text)
		}
		errs = append(errs, edit.WriteFile(filepath.Join(dir, name+".log"), []byte(b.String()), nil))
	}
	return errors.Join(errs...)
}

// Saved yields the lines of an account that an earlier process saved in dir.
func Saved(dir, account string) (iter.Seq[host.LogLine], error) {
	text, err := os.ReadFile(filepath.Join(dir, account+".log"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return func(yield func(host.LogLine) bool) {
		seq := uint64(0)
		for line := range strings.Lines(string(text)) {
			seq++
			stamp, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			at, _ := time.Parse(time.RFC3339Nano, stamp)
			if !yield(host.LogLine{Seq: seq, Time: at, Text: text}) {
				return
			}
		}
	}, nil
}
