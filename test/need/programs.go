package need

import (
	"os/exec"
	"testing"
)

// Chromium returns the path of a Chromium.
func Chromium(t testing.TB) string {
	t.Helper()
	return require(t, func() (string, error) { return onPath("chromium") })
}

// Tmux returns the path of a tmux.
func Tmux(t testing.TB) string {
	t.Helper()
	return require(t, func() (string, error) { return onPath("tmux") })
}

// onPath finds a program that the system has installed.
func onPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", notThere(name + ": " + ErrMissing.Error())
	}
	return path, nil
}
