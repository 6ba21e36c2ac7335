//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// slots is how many clients work at once when the suite starts them all together.
const slots = 3

// takeSlot waits for one of the places in dir, which the system gives back when
// the process ends. An empty dir means no limit.
func takeSlot(ctx context.Context, dir string) error {
	if dir == "" {
		return nil
	}
	var files []*os.File
	for i := range slots {
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("slot-%d", i)), os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, f := range files {
			if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
