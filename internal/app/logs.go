package app

import (
	"context"
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

// rings keep what each server wrote to standard error, across restarts.
type rings struct {
	mu sync.Mutex // guards by
	by map[host.Key]*process.Ring
}

func (r *rings) of(k host.Key) *process.Ring {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[host.Key]*process.Ring{}
	}
	k = callerKey(k)
	if r.by[k] == nil {
		r.by[k] = process.NewRing(process.DefaultStderrBytes)
	}
	return r.by[k]
}

// drop forgets the lines of an account.
func (r *rings) drop(k host.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.by, callerKey(k))
}

// save writes the last words of every server that had any, so that `usher logs`
// can show why a short-lived command failed.
func (r *rings) save(dir string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for k, ring := range r.by {
		ring.Close()
		lines := ring.Lines()
		if len(lines) == 0 || k.Principal != host.Local {
			continue
		}
		name := accountName(k.Server, k.Account)
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

func (h *App) logDir() string { return filepath.Join(h.dirs.State, "logs") }

// Logs yields what a server wrote to standard error: live where this host runs it,
// otherwise the last words that an earlier run kept.
func (h *App) Logs(ctx context.Context, account string, follow bool) (iter.Seq[host.LogLine], error) {
	k, err := h.key(account)
	if err != nil {
		return nil, err
	}
	live, err := h.hosted.Logs(ctx, k, follow)
	if err != nil || follow {
		return live, err
	}
	for range live {
		return live, nil
	}
	return savedLogs(filepath.Join(h.logDir(), account+".log"))
}

func savedLogs(path string) (iter.Seq[host.LogLine], error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return func(yield func(host.LogLine) bool) {
		seq := uint64(0)
		for line := range strings.Lines(string(text)) {
			seq++
			stamp, words, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			at, _ := time.Parse(time.RFC3339Nano, stamp)
			if !yield(host.LogLine{Seq: seq, Time: at, Text: words}) {
				return
			}
		}
	}, nil
}
