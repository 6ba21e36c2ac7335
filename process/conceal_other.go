//go:build !linux

package process

// Conceal does nothing on this system, which has no way to keep processes of the same
// user from reading the environment of this one. Keys belong in a file or a keychain.
func Conceal() error { return nil }
