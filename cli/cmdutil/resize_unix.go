//go:build unix

package cmdutil

import (
	"os"
	"os/signal"
	"syscall"
)

// Resizes tells whenever the terminal gets another size, until stop.
func Resizes() (changed <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGWINCH)
	return c, func() { signal.Stop(c) }
}
