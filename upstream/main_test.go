package upstream_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/process"
)

// The test binary plays the children of the tests: the guard, a server built on
// the official SDK, and the misbehaving one.
func TestMain(m *testing.M) {
	process.Main()
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "child-sdk":
			os.Exit(sdkMain(os.Args[2:]))
		case "child-fake":
			os.Exit(fake.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
		}
	}
	goleak.VerifyTestMain(m)
}
