package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/keys"
)

// prompt is what a person at the terminal can be asked; without one, nothing.
func (a *factory) prompt() app.Prompt {
	if !a.io.InTTY {
		return app.Prompt{}
	}
	return app.Prompt{Passphrase: a.askPassphrase, Input: a.askInput}
}

func (a *factory) askPassphrase(ctx context.Context, q keys.PassphraseQuestion) (vault.Secret, error) {
	switch {
	case q.Wrong:
		a.note("that is not the passphrase")
	case q.New:
		a.note("choose a passphrase for usher's store: without it, logins and secrets cannot be read again")
	}
	phrase, err := a.askHidden(ctx, "passphrase")
	if err != nil || !q.New {
		return vault.NewSecret(phrase), err
	}
	again, err := a.askHidden(ctx, "once more")
	if err != nil {
		return vault.Secret{}, err
	}
	if again != phrase {
		return vault.Secret{}, errors.New("the two are not the same")
	}
	return vault.NewSecret(phrase), nil
}

// askInput asks for the value of an ${input:ID}, as a file describes it.
func (a *factory) askInput(ctx context.Context, in config.Input) (vault.Secret, error) {
	label := cleanLine(in.ID)
	if in.Description != "" {
		label = cleanLine(in.Description) + " (" + label + ")"
	}
	if len(in.Options) > 0 {
		label += ", one of " + cleanLine(strings.Join(in.Options, ", "))
	}
	if in.Default != "" {
		label += " [" + cleanLine(in.Default) + "]"
	}
	ask := a.askShown
	if in.Password {
		ask = a.askHidden
	}
	text, err := ask(ctx, label)
	if text == "" {
		text = in.Default
	}
	return vault.NewSecret(text), err
}

func (a *factory) askShown(ctx context.Context, label string) (string, error) {
	return a.askLine(ctx, label, func() (string, error) { return readLine(a.io.In) }, func() {})
}

// askHidden asks without showing what is typed.
func (a *factory) askHidden(ctx context.Context, label string) (string, error) {
	f, ok := a.io.In.(*os.File)
	if !ok {
		return a.askShown(ctx, label)
	}
	before, err := term.GetState(int(f.Fd()))
	if err != nil {
		return "", fmt.Errorf("look at the terminal: %w", err)
	}
	return a.askLine(ctx, label, func() (string, error) {
		text, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(a.io.Err)
		return string(text), err
	}, func() { _ = term.Restore(int(f.Fd()), before) }) // nothing is left to be done if this fails
}

// askLine puts the question and waits for the answer. A read from a terminal
// cannot be cancelled: after Ctrl-C it is left behind, and the program ends.
func (a *factory) askLine(ctx context.Context, label string, read func() (string, error), undo func()) (string, error) {
	fmt.Fprintf(a.io.Err, "%s: ", clean(label))
	type answer struct {
		line string
		err  error
	}
	heard := make(chan answer, 1)
	go func() {
		line, err := read()
		heard <- answer{line, err}
	}()
	select {
	case <-ctx.Done():
		undo()
		fmt.Fprintln(a.io.Err)
		return "", ctx.Err()
	case got := <-heard:
		if got.err != nil && got.line == "" {
			return "", errors.New("there was no answer")
		}
		return strings.TrimSuffix(got.line, "\r"), nil
	}
}
