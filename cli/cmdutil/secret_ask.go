package cmdutil

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/keys"
	"github.com/usher-mcp/usher/vault/sqlstore"
)

// prompt is what a person at the terminal can be asked; without one, nothing.
func prompt(f *Factory) app.Prompt {
	if !f.IO.InTTY {
		return app.Prompt{}
	}
	return app.Prompt{Passphrase: func(ctx context.Context, q keys.PassphraseQuestion) (vault.Secret, error) {
		return askPassphrase(ctx, f, q)
	}, Input: func(ctx context.Context, in config.Input) (vault.Secret, error) { return askInput(ctx, f, in) }}
}

func askPassphrase(ctx context.Context, f *Factory, q keys.PassphraseQuestion) (vault.Secret, error) {
	switch {
	case q.Wrong:
		f.Note("that is not the passphrase")
	case q.New:
		f.Note("choose a passphrase for usher's store: without it, logins and secrets cannot be read again")
	}
	phrase, err := AskHidden(ctx, f, "passphrase")
	if err != nil || !q.New {
		return vault.NewSecret(phrase), err
	}
	again, err := AskHidden(ctx, f, "once more")
	if err != nil {
		return vault.Secret{}, err
	}
	if again != phrase {
		return vault.Secret{}, errors.New("the two are not the same")
	}
	return vault.NewSecret(phrase), nil
}

// askInput asks for the value of an ${input:ID}, as a file describes it.
func askInput(ctx context.Context, f *Factory, in config.Input) (vault.Secret, error) {
	label := CleanLine(in.ID)
	if in.Description != "" {
		label = CleanLine(in.Description) + " (" + label + ")"
	}
	if len(in.Options) > 0 {
		label += ", one of " + CleanLine(strings.Join(in.Options, ", "))
	}
	if in.Default != "" {
		label += " [" + CleanLine(in.Default) + "]"
	}
	ask := func(ctx context.Context, label string) (string, error) { return askShown(ctx, f, label) }
	if in.Password {
		ask = func(ctx context.Context, label string) (string, error) { return AskHidden(ctx, f, label) }
	}
	text, err := ask(ctx, label)
	if text == "" {
		text = in.Default
	}
	return vault.NewSecret(text), err
}

func askShown(ctx context.Context, f *Factory, label string) (string, error) {
	return askLine(ctx, f, label, func() (string, error) { return readLine(f.IO.In) }, func() {})
}

// AskHidden asks without showing what is typed.
func AskHidden(ctx context.Context, f *Factory, label string) (string, error) {
	file, ok := f.IO.In.(*os.File)
	if !ok {
		return askShown(ctx, f, label)
	}
	before, err := term.GetState(int(file.Fd()))
	if err != nil {
		return "", fmt.Errorf("look at the terminal: %w", err)
	}
	return askLine(ctx, f, label, func() (string, error) {
		text, err := term.ReadPassword(int(file.Fd()))
		fmt.Fprintln(f.IO.Err)
		return string(text), err
	}, func() { _ = term.Restore(int(file.Fd()), before) }) // nothing is left to be done if this fails
}

// askLine puts the question and waits for the answer. A read from a terminal
// cannot be cancelled: after Ctrl-C it is left behind, and the program ends.
func askLine(ctx context.Context, f *Factory, label string, read func() (string, error), undo func()) (string, error) {
	fmt.Fprintf(f.IO.Err, "%s: ", Clean(label))
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
		fmt.Fprintln(f.IO.Err)
		return "", ctx.Err()
	case got := <-heard:
		if got.err != nil && got.line == "" {
			return "", errors.New("there was no answer")
		}
		return strings.TrimSuffix(got.line, "\r"), nil
	}
}

// WarnOfPassword warns that other users can see the arguments of a process.
func WarnOfPassword(f *Factory, place string) {
	if u, err := url.Parse(place); err == nil && sqlstore.IsPostgres(place) {
		if _, given := u.User.Password(); given {
			f.Note("usher: a password in an argument can be seen by others; '${env:NAME}' keeps it out")
		}
	}
}
