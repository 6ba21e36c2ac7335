// Package need finds the outside programs that tests run: Node, servers from
// npm, the conformance suite and its fixture. scripts/setup.sh installs them
// under .cache/; this package only looks there and never downloads anything.
//
// It is the one place that may skip a test. Under `make test`, and wherever CI
// is set, a missing program is a failure, so that nothing is left out quietly.
// Someone who types `go test ./...` without set-up gets a skip that names the
// command to run.
package need

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// ErrMissing says that a program is not installed; the error around it names
// the program and the command that installs it.
var ErrMissing = errors.New("not installed; run: make setup")

// oldestNode is the first major version of Node that runs the conformance suite.
const oldestNode = 22

// Node returns the path of a Node of at least version 22.
func Node(t testing.TB) string {
	t.Helper()
	return require(t, FindNode)
}

// NPM returns the script to run with Node for a server published by the
// protocol's own organisation, for example "server-everything".
func NPM(t testing.TB, name string) string {
	t.Helper()
	return require(t, func() (string, error) { return FindNPM(name) })
}

// Conformance returns the script to run with Node for the official suite.
func Conformance(t testing.TB) string {
	t.Helper()
	return NPM(t, "conformance")
}

// Fixture returns the Go SDK's conformance server: stdio without flags,
// Streamable HTTP with -http ADDR.
func Fixture(t testing.TB) string {
	t.Helper()
	return require(t, FindFixture)
}

// Proof reports whether the long forms of the tests are wanted (`make proof`).
// A test uses it to choose a size, never to leave itself out.
func Proof() bool {
	return os.Getenv("USHER_PROOF") == "1"
}

// require turns a look-up into a path, or ends the test.
func require(t testing.TB, find func() (string, error)) string {
	t.Helper()
	path, err := find()
	switch {
	case err == nil:
		return path
	case errors.Is(err, ErrMissing) && !strict():
		t.Skipf("skipped: %v", err)
	default:
		t.Fatal(err)
	}
	return ""
}

// strict reports whether a missing program must fail the test.
func strict() bool {
	return os.Getenv("CI") != "" || os.Getenv("USHER_TEST_STRICT") != ""
}

// FindNode is Node for programs that are not tests.
func FindNode() (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	installed, err := filepath.Glob(filepath.Join(root, ".cache", "npm", "node_modules", "node-*", "bin", "node"))
	if err != nil {
		return "", fmt.Errorf("look for Node: %w", err)
	}
	if len(installed) > 0 {
		return installed[0], nil
	}
	system, err := exec.LookPath("node")
	if err != nil {
		return "", fmt.Errorf("Node %d: %w", oldestNode, ErrMissing)
	}
	out, err := exec.Command(system, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w", system, err)
	}
	if !recentNode(string(out)) {
		return "", fmt.Errorf("Node %d (%s is %s): %w", oldestNode, system, strings.TrimSpace(string(out)), ErrMissing)
	}
	return system, nil
}

// recentNode reads a version as Node prints it, "v22.23.3".
func recentNode(version string) bool {
	major, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(version), "v"), ".")
	n, err := strconv.Atoi(major)
	return err == nil && n >= oldestNode
}

// FindNPM is NPM for programs that are not tests.
func FindNPM(name string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, ".cache", "npm", "node_modules", "@modelcontextprotocol", name)
	manifest, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("npm package %s: %w", name, ErrMissing)
	}
	if err != nil {
		return "", fmt.Errorf("npm package %s: %w", name, err)
	}
	script, err := binOf(manifest)
	if err != nil {
		return "", fmt.Errorf("npm package %s: %w", name, err)
	}
	return filepath.Join(dir, filepath.FromSlash(script)), nil
}

// binOf reads the one program that a package.json declares.
func binOf(manifest []byte) (string, error) {
	var pkg struct {
		Bin json.RawMessage `json:"bin"`
	}
	if err := json.Unmarshal(manifest, &pkg); err != nil {
		return "", fmt.Errorf("read package.json: %w", err)
	}
	var one string
	if json.Unmarshal(pkg.Bin, &one) == nil {
		return one, nil
	}
	var several map[string]string
	if err := json.Unmarshal(pkg.Bin, &several); err != nil {
		return "", fmt.Errorf("read bin of package.json: %w", err)
	}
	if len(several) != 1 {
		return "", fmt.Errorf("package.json names %d programs, want one", len(several))
	}
	for _, script := range several {
		return script, nil
	}
	return "", nil
}

// FindFixture is Fixture for programs that are not tests.
func FindFixture() (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, ".cache", "bin", "everything-server")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("conformance fixture: %w", ErrMissing)
	}
	return path, nil
}

// Root returns the top folder of this checkout, found upwards from the working
// directory.
func Root() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the checkout: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(mod), "module github.com/usher-mcp/usher\n") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find the checkout: no go.mod of usher above %s", start)
		}
	}
}
