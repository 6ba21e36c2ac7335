//go:build !unix

package keys

import "io/fs"

// mountedSecret is for systems whose files have an owner and a mode.
func mountedSecret(fs.FileInfo) bool { return false }
