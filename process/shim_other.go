//go:build !linux

package process

// Main is the entry of the shim and belongs on the first line of main. It returns
// at once when this process is not a shim, which on this system is always the case.
func Main() {}

// Self returns the value for Options.Shim that names this very program, empty on
// systems that have no shim.
func Self() string { return "" }
