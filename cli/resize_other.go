//go:build !unix

package cli

import "os"

// resizes tells nothing where there is no signal for it: the next redraw sees it.
func resizes() (changed <-chan os.Signal, stop func()) { return nil, func() {} }
