//go:build !unix

package edit

import (
	"io/fs"
	"os"
)

func keepOwner(*os.File, fs.FileInfo) {}

// syncDir has nothing to do: such systems cannot sync a directory.
func syncDir(string) error { return nil }
