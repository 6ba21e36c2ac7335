package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/keys"
)

// typing is a person at a terminal who has typed ahead.
func typing(text string) (*factory, *bytes.Buffer) {
	var said bytes.Buffer
	return &factory{io: IO{In: strings.NewReader(text), Err: &said, InTTY: true}}, &said
}

// A passphrase that is new is asked for twice, and the whole way through the keys
// works with what the terminal gives.
func TestAskPassphrase(t *testing.T) {
	store := vault.NewMemory()
	defer func() { _ = store.Close() }() // memory
	put := func(a *factory, name string) error {
		k := keys.New(store, keys.Options{Setting: "passphrase", ScryptLog: 4, Passphrase: a.prompt().Passphrase})
		_, err := keys.Sealed(store, k).Put(t.Context(), vault.LocalKey(vault.KindSecret, name), []byte("x"), 0)
		return err
	}
	a, _ := typing("correct horse\ncorrect hearse\n")
	if err := put(a, "a"); !errors.Is(err, vault.ErrNoKey) || !strings.Contains(err.Error(), "not the same") {
		t.Errorf("two different ones: %v", err)
	}
	a, said := typing("correct horse\ncorrect horse\n")
	if err := put(a, "a"); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), "cannot be read again") || strings.Contains(said.String(), "horse") {
		t.Errorf("said %q", said)
	}
	a, said = typing("wrong\ncorrect horse\n")
	if err := put(a, "b"); err != nil || !strings.Contains(said.String(), "that is not the passphrase") {
		t.Errorf("a second try: %v, said %q", err, said)
	}
	a, _ = typing("")
	if err := put(a, "c"); !errors.Is(err, vault.ErrNoKey) {
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
			a, said := typing(tt.typed)
			got, err := a.askInput(t.Context(), tt.in)
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
	a := &factory{io: IO{In: r, Err: io.Discard, InTTY: true}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.askHidden(ctx, "value"); !errors.Is(err, context.Canceled) {
		t.Errorf("askHidden = %v, want context.Canceled", err)
	}
}

func TestKeyPlaceOf(t *testing.T) {
	a := &factory{io: IO{System: config.System{Workdir: "/work dir", Home: "/h"}}}
	for to, want := range map[string]string{
		"": "", "keychain": "keychain", "passphrase": "passphrase", "env:K": "env:K",
		"file:k": "file:" + filepath.Join("/work dir", "k"), "file:/k": "file:/k",
		"auto": "?", "file:": "?", "env": "?", "kms:x": "?",
	} {
		got, err := a.keyPlace(to)
		if err != nil {
			got = "?"
		}
		if got != want {
			t.Errorf("keyPlace(%q) = %q, %v; want %q", to, got, err, want)
		}
	}
}
