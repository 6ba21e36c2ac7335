package cmdutil

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// elicitation is what a person at a terminal can answer.
const elicitation = `{"elicitation":{"form":{},"url":{}}}`

// ErrNoTerminal is returned for a question when there is no terminal to ask it at.
var ErrNoTerminal = errors.New("confirmation required, but stdin is not a terminal")

// Confirm asks a yes-or-no question on the terminal. Without one it is an error,
// so that nothing is ever agreed to by accident.
func (f *Factory) Confirm(ctx context.Context, question string) (bool, error) {
	if !f.IO.InTTY {
		return false, WithHint(ErrNoTerminal, "%s", AgreeHint(f, "add --yes to confirm"))
	}
	fmt.Fprintf(f.IO.Err, "%s [y/N] ", Clean(question))
	type answer struct {
		line string
		err  error
	}
	heard := make(chan answer, 1)
	// A read from a terminal cannot be cancelled: after Ctrl-C it is left behind,
	// and the program ends.
	go func() {
		line, err := readLine(f.IO.In)
		heard <- answer{line, err}
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(f.IO.Err)
		return false, ctx.Err()
	case got := <-heard:
		if got.err != nil && got.line == "" {
			fmt.Fprintln(f.IO.Err)
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
