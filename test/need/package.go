package need

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Package returns the folder of an installed npm package, for a script that
// imports it.
func Package(t testing.TB, name string) string {
	t.Helper()
	return require(t, func() (string, error) { return FindPackage(name) })
}

// FindPackage is Package for programs that are not tests.
func FindPackage(name string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, ".cache", "npm", "node_modules", filepath.FromSlash(name))
	if _, err := os.Stat(filepath.Join(dir, "package.json")); errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("npm package %s: %w", name, ErrMissing)
	} else if err != nil {
		return "", fmt.Errorf("npm package %s: %w", name, err)
	}
	return dir, nil
}
