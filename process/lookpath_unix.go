//go:build unix

package process

import "io/fs"

func candidates(path string, _ []string) []string { return []string{path} }

func executableMode(m fs.FileMode) bool { return m&0o111 != 0 }
