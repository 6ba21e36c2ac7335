package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// maxFile is how much of a file is looked at.
const maxFile = 8 << 20

// watchFiles sweeps every file below dir as it is closed by a writer, until ctx ends.
// The kernel hands over an open file, so that one which is removed at once is seen
// too. It takes the right to watch, which only root has.
func watchFiles(ctx context.Context, s *sweeper, dir string) (stop func(), err error) {
	fd, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_UNLIMITED_QUEUE|unix.FAN_CLOEXEC, unix.O_RDONLY|unix.O_LARGEFILE|unix.O_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("watch files: %w", err)
	}
	if err := unix.FanotifyMark(fd, unix.FAN_MARK_ADD|unix.FAN_MARK_MOUNT, unix.FAN_CLOSE_WRITE, unix.AT_FDCWD, dir); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("watch files below %s: %w", dir, err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		readFiles(ctx, s, fd, dir)
		_ = unix.Close(fd)
	}()
	return func() { <-done }, nil
}

// lastFiles is how long events are taken in after the end: there is no last one where
// others write to the same file system.
const lastFiles = 2 * time.Second

// readFiles takes events in, the last ones after ctx has ended.
func readFiles(ctx context.Context, s *sweeper, fd int, dir string) {
	buf := make([]byte, 64<<10)
	var end time.Time
	for {
		ended := ctx.Err() != nil
		if ended && end.IsZero() {
			end = time.Now().Add(lastFiles)
		}
		if ended && time.Now().After(end) {
			return
		}
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, 20)
		if n == 0 && ended || err != nil && err != unix.EINTR {
			return
		}
		if n <= 0 {
			continue
		}
		n, err = unix.Read(fd, buf)
		if err != nil {
			continue
		}
		for rest := buf[:n]; len(rest) >= 24; {
			size := binary.NativeEndian.Uint32(rest)
			if file := int32(binary.NativeEndian.Uint32(rest[16:])); file >= 0 {
				sweepFile(s, os.NewFile(uintptr(file), ""), dir, end.IsZero() || time.Now().Before(end))
			}
			rest = rest[min(len(rest), int(size)):]
		}
	}
}

// sweepFile looks at a file, if there is still time, and closes it.
func sweepFile(s *sweeper, f *os.File, dir string, inTime bool) {
	defer func() { _ = f.Close() }() // it was only read
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	path = strings.TrimSuffix(path, " (deleted)")
	if !inTime || err != nil || !strings.HasPrefix(path, dir+"/") || skipped(path) {
		return
	}
	head := make([]byte, 4)
	if n, _ := f.ReadAt(head, 0); n == 0 || string(head) == "\x7fELF" || string(head) == "!<ar" {
		return // empty, or what a compiler made
	}
	text, _ := io.ReadAll(io.NewSectionReader(f, 0, maxFile)) // up to its end, or as far as it can be read
	s.text("files", path, text)
}

// skipped reports files that are not usher's: what compilers leave, the programs and
// the database that set-up has in .cache, and what a test keeps on purpose.
func skipped(path string) bool {
	for _, part := range strings.Split(filepath.Dir(path), "/") {
		if strings.HasPrefix(part, exempt) || strings.HasPrefix(part, "go-build") || part == ".cache" {
			return true
		}
	}
	return false
}
