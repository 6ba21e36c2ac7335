//go:build unix && !linux

package process

import (
	"context"
	"os"
	"syscall"
)

func launch(ctx context.Context, s *spec) (runner, error) { return startDirect(ctx, s) }

// needsMarker is false: environments of other processes are not readable here.
func needsMarker(Options) bool { return false }

func setDeathSignal(*syscall.SysProcAttr) (release func()) { return func() {} }

func startListed(path string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
	return os.StartProcess(path, argv, attr)
}

func unlist(int) {}
