//go:build !linux

package main

import (
	"context"
	"errors"
)

// watchFiles needs fanotify.
func watchFiles(context.Context, *sweeper, string) (stop func(), err error) {
	return nil, errors.New("files cannot be watched on this system")
}
