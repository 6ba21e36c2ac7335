package clients

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/usher-mcp/usher/cli"
	"github.com/usher-mcp/usher/process"
	"github.com/usher-mcp/usher/test/docs/standin"
)

func TestMain(m *testing.M) {
	process.Main() // the guard around a child is this binary too
	run := runner(func() int {
		code := m.Run()
		if err := goleak.Find(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, "goleak:", err)
			code = 1
		}
		return code
	})
	playing := func() { syscall.Exit(standin.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
	testscript.Main(run, map[string]func(){
		"usher": func() { os.Exit(cli.Main(os.Args[1:], cli.System())) },
		// Children get a clean environment, so GORACE cannot keep the race detector
		// from sleeping for a second at their end; not telling it does.
		"npx": playing, "uvx": playing,
		"locked": func() { syscall.Exit(standin.Locked(os.Args[1:], os.Stdout, os.Stderr)) },
		"agent": func() {
			fmt.Fprintln(os.Stderr, agentMain(os.Args[1:]))
			os.Exit(1)
		},
		"visit": func() { syscall.Exit(standin.Visit(os.Args[1:], os.Stderr)) },
	})
}

type runner func() int

func (r runner) Run() int { return r() }
