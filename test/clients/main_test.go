package clients

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/usher-mcp/usher/cli"
	"github.com/usher-mcp/usher/process"
)

func TestMain(m *testing.M) {
	process.Main() // the guard around a child is this binary too
	if filepath.Base(os.Args[0]) == "usher" {
		os.Exit(cli.Main(os.Args[1:], cli.System()))
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "goleak:", err)
		code = 1
	}
	os.Exit(code)
}
