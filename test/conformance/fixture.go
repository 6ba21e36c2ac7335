package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"

	"github.com/usher-mcp/usher/test/need"
)

// entry is how a server stands in mcp.json.
type entry struct {
	Command string `json:"command,omitempty"`
	Type    string `json:"type,omitempty"`
	URL     string `json:"url,omitempty"`
}

// The fixtures: servers with everything the suite asks for.
const (
	goStdio     = "stdio"     // official Go SDK, a child; both eras
	goStateful  = "stateful"  // the same over HTTP with sessions; the older era
	goStateless = "stateless" // the same over HTTP without
	tsDual      = "dual"      // official TypeScript SDK, both eras on one URL
	tsModern    = "modern"    // the same without the older era
	tsLegacy    = "legacy"    // the same without the modern era
)

// startFixture starts a fixture and returns its entry. A child is not started here:
// that is what its entry is for.
func startFixture(ctx context.Context, name string) (e entry, stop func(), err error) {
	switch name {
	case goStdio:
		program, err := need.FindFixture()
		return entry{Command: program}, func() {}, err
	case goStateful, goStateless:
		return startGo(ctx, name == goStateless)
	}
	return startTypeScript(ctx, name)
}

func startGo(ctx context.Context, stateless bool) (e entry, stop func(), err error) {
	program, err := need.FindFixture()
	if err != nil {
		return entry{}, nil, err
	}
	addr, err := need.Address()
	if err != nil {
		return entry{}, nil, err
	}
	cmd := exec.CommandContext(ctx, program, "-http", addr, fmt.Sprintf("-stateless=%t", stateless))
	endWhole(cmd)
	if err := cmd.Start(); err != nil {
		return entry{}, nil, fmt.Errorf("start the fixture: %w", err)
	}
	stop = func() {
		_ = cmd.Cancel()
		_ = cmd.Wait() // it was told to end
	}
	if err := waitFor(ctx, addr); err != nil {
		stop()
		return entry{}, nil, fmt.Errorf("wait for the fixture: %w", err)
	}
	return entry{Type: "http", URL: "http://" + addr + "/mcp"}, stop, nil
}

func startTypeScript(ctx context.Context, era string) (e entry, stop func(), err error) {
	root, err := need.Root()
	if err != nil {
		return entry{}, nil, err
	}
	node, err := need.FindNode()
	if err != nil {
		return entry{}, nil, err
	}
	if _, err := need.FindPackage("@modelcontextprotocol/server"); err != nil {
		return entry{}, nil, err
	}
	script := filepath.Join(root, "test", "conformance", "fixture", "everything.mjs")
	cmd := exec.CommandContext(ctx, node, script, filepath.Join(root, ".cache", "npm"), era)
	stdin, err := cmd.StdinPipe() // it ends with this
	if err != nil {
		return entry{}, nil, err
	}
	url, end, err := startPrinting(cmd, regexp.MustCompile(`serving (http://\S+)`))
	if err != nil {
		return entry{}, nil, fmt.Errorf("start the fixture: %w", err)
	}
	return entry{Type: "http", URL: url}, func() {
		_ = stdin.Close()
		end()
	}, nil
}
