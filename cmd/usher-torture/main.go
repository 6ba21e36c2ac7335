// Command usher-torture checks what usher promises, on this machine.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/cli/torture"
	"github.com/usher-mcp/usher/process"
)

func main() {
	process.Main() // returns at once unless this is the shim around a child
	if err := errors.Join(process.Conceal(), process.Adopt()); err != nil {
		fmt.Fprintln(os.Stderr, "usher-torture:", err)
	}
	os.Exit(torture.Main(os.Args[1:], cmdutil.System()))
}
