//go:build unix && !linux

package process

import (
	"context"
	"syscall"
)

func launch(ctx context.Context, s *spec) (runner, error) { return startDirect(ctx, s) }

// needsMarker is false: environments of other processes are not readable here.
func needsMarker(Options) bool { return false }

func setDeathSignal(*syscall.SysProcAttr) (release func()) { return func() {} }
