package cmdutil

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/keys"
)

// typing is a person at a terminal who has typed ahead.
func typing(text string) (*Factory, *bytes.Buffer) {
	var said bytes.Buffer
	return &Factory{IO: IO{In: strings.NewReader(text), Err: &said, InTTY: true}}, &said
}

// A passphrase that is new is asked for twice, and the whole way through the keys
// works with what the terminal gives.
func TestAskPassphrase(t *testing.T) {
	store := vault.NewMemory()
	defer func() { _ = store.Close() }() // memory
	put := func(f *Factory, name string) error {
		k := keys.New(store, keys.Options{Setting: "passphrase", ScryptLog: 4, Passphrase: prompt(f).Passphrase})
		_, err := keys.Sealed(store, k).Put(t.Context(), vault.LocalKey(vault.KindSecret, name), []byte("x"), 0)
		return err
	}
	f, _ := typing("correct horse\ncorrect hearse\n")
	if err := put(f, "a"); !errors.Is(err, vault.ErrNoKey) || !strings.Contains(err.Error(), "not the same") {
		t.Errorf("two different ones: %v", err)
	}
	f, said := typing("correct horse\ncorrect horse\n")
	if err := put(f, "a"); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), "cannot be read again") || strings.Contains(said.String(), "horse") {
		t.Errorf("said %q", said)
	}
	f, said = typing("wrong\ncorrect horse\n")
	if err := put(f, "b"); err != nil || !strings.Contains(said.String(), "that is not the passphrase") {
		t.Errorf("a second try: %v, said %q", err, said)
	}
	f, _ = typing("")
	if err := put(f, "c"); !errors.Is(err, vault.ErrNoKey) {
		t.Errorf("no answer: %v, want ErrNoKey", err)
	}
}

func TestAskInput(t *testing.T) {
	tests := []struct {
		name, typed string
		in          config.Input
		want, says  string
	}{
		{"plain", "eu\n", config.Input{ID: "region"}, "eu", "region: "},
		{"described", "eu\n", config.Input{ID: "region", Description: "Where it\nruns"}, "eu", "Where it runs (region): "},
		{"default", "\n", config.Input{ID: "region", Default: "us", Options: []string{"us", "eu"}}, "us", "region, one of us, eu [us]: "},
		{"hidden", "hush\r\n", config.Input{ID: "token", Password: true}, "hush", "token: "},
		{"hostile", "x\n", config.Input{ID: "token", Description: "\x1b[2J"}, "x", `\u001b[2J (token): `},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, said := typing(tt.typed)
			got, err := askInput(t.Context(), f, tt.in)
			if err != nil || got.Reveal() != tt.want || said.String() != tt.says {
				t.Errorf("askInput = %q, %v, said %q; want %q, said %q", got.Reveal(), err, said, tt.want, tt.says)
			}
		})
	}
}

// Ctrl-C ends a question.
func TestAskCancelled(t *testing.T) {
	r, w := io.Pipe()
	defer func() { _ = w.Close() }() // ends the read that is left behind
	f := &Factory{IO: IO{In: r, Err: io.Discard, InTTY: true}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := AskHidden(ctx, f, "value"); !errors.Is(err, context.Canceled) {
		t.Errorf("askHidden = %v, want context.Canceled", err)
	}
}
