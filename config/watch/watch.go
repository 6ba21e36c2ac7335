// Package watch calls a function when files change.
//
//	watch.Files(ctx, func() []string { return cfg.Watch }, reload)
//
// It compares size, mode and modification time every two seconds and waits until the
// files have not changed for a moment, so that a half-written file is not read. It uses
// no notifications of the operating system: they differ between systems and miss files
// that editors replace.
package watch

import (
	"context"
	"os"
	"slices"
	"time"
)

const (
	// Every is how often the files are compared.
	Every = 2 * time.Second
	// Quiet is how long the files must stay unchanged before they are read.
	Quiet = 200 * time.Millisecond
)

// Files calls changed after one of the files changed, appeared or was removed, until ctx
// ends. paths is called before each comparison: what changed reads may name other files.
func Files(ctx context.Context, paths func() []string, changed func()) {
	seen := stamps(paths())
	tick := time.NewTicker(Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := stamps(paths())
		if slices.Equal(now, seen) || !settled(ctx, paths, now) {
			continue
		}
		changed()
		seen = stamps(paths())
	}
}

// settled reports whether the files stay as they are for Quiet.
func settled(ctx context.Context, paths func() []string, now []stamp) bool {
	pause := time.NewTimer(Quiet)
	defer pause.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-pause.C:
	}
	return slices.Equal(stamps(paths()), now)
}

// stamp tells two versions of a file apart without reading it.
type stamp struct {
	path  string
	found bool
	size  int64
	mode  os.FileMode
	mod   time.Time
}

func stamps(paths []string) []stamp {
	out := make([]stamp, len(paths))
	for i, path := range paths {
		out[i].path = path
		if info, err := os.Stat(path); err == nil {
			out[i] = stamp{path, true, info.Size(), info.Mode(), info.ModTime()}
		}
	}
	return out
}
