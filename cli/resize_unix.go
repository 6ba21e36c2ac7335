//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// resizes tells whenever the terminal gets another size, until stop.
func resizes() (changed <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGWINCH)
	return c, func() { signal.Stop(c) }
}
