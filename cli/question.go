package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// confirm asks a yes-or-no question on the terminal. Without one it is an error,
// so that nothing is ever agreed to by accident.
func (a *factory) confirm(ctx context.Context, question string) (bool, error) {
	if !a.io.InTTY {
		return false, withHint(errNoTerminal, "%s", a.agreeHint("add --yes to agree without being asked"))
	}
	fmt.Fprintf(a.io.Err, "%s [y/N] ", clean(question))
	type answer struct {
		line string
		err  error
	}
	heard := make(chan answer, 1)
	// A read from a terminal cannot be cancelled: after Ctrl-C it is left behind,
	// and the program ends.
	go func() {
		line, err := readLine(a.io.In)
		heard <- answer{line, err}
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.io.Err)
		return false, ctx.Err()
	case got := <-heard:
		if got.err != nil && got.line == "" {
			fmt.Fprintln(a.io.Err)
			return false, nil // the end of input is no yes
		}
		word := strings.ToLower(strings.TrimSpace(got.line))
		return word == "y" || word == "yes", nil
	}
}

// readLine reads up to a line break and not a byte more, so that what follows is
// there for the next question.
func readLine(r io.Reader) (string, error) {
	var line []byte
	var b [1]byte
	for {
		n, err := r.Read(b[:])
		if n == 1 {
			if b[0] == '\n' {
				return string(line), nil
			}
			line = append(line, b[0])
		}
		if err != nil {
			return string(line), err
		}
	}
}
