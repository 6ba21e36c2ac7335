//go:build !unix

package cmdutil

import "os"

// Resizes tells nothing where there is no signal for it: the next redraw sees it.
func Resizes() (changed <-chan os.Signal, stop func()) { return nil, func() {} }
