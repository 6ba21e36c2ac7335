package app

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/vault"
)

// noKeychain is a machine without one.
type noKeychain struct{}

func (noKeychain) Get(_, _ string) (string, error) { return "", errors.New("there is no keychain") }
func (noKeychain) Set(_, _, _ string) error        { return errors.New("there is no keychain") }
func (noKeychain) Remove(_, _ string) error        { return errors.New("there is no keychain") }

// home is a machine of its own for Open.
func home(t *testing.T, env map[string]string) (string, *Options) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"USHER_HOME": dir}
	for k, v := range env {
		all[k] = v
	}
	sys := config.System{Home: dir, Workdir: dir, LookupEnv: func(name string) (string, bool) { v, ok := all[name]; return v, ok }}
	return dir, &Options{Config: &config.Config{}, Load: config.LoadOptions{System: sys}, Keychain: noKeychain{}}
}

func open(t *testing.T, opt *Options) *App {
	t.Helper()
	h, err := Open(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// The key is made with the first record, and no file but the sealed store ever
// holds a secret.
func TestStoreIsSealed(t *testing.T) {
	const canary = "canary-91c4"
	dir, opt := home(t, nil)
	h := open(t, opt)
	if ok, err := h.Approvals().Approved(t.Context(), "d"); ok || err != nil {
		t.Fatal(ok, err)
	}
	key := filepath.Join(dir, keyFile)
	if _, err := os.Stat(key); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a key was made though there is no record: %v", err)
	}
	if err := h.Secrets().Set(t.Context(), "token", vault.NewSecret(canary)); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key file: %v, %v", info, err)
	}
	status, err := h.Keys().Status(t.Context())
	if err != nil || !strings.Contains(status.Statement(), key) {
		t.Errorf("Statement = %q, %v", status.Statement(), err)
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(canary)) {
			t.Errorf("%s holds the secret in the clear", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if value, err := open(t, opt).Secrets().Get(t.Context(), "token"); err != nil || value.Reveal() != canary {
		t.Errorf("the next process reads %v, %v", value, err)
	}
}

func TestSecretPlaceholders(t *testing.T) {
	_, opt := home(t, nil)
	opt.Config.Inputs = []config.Input{{ID: "asked", Description: "what it is"}}
	var mu sync.Mutex
	var asked []config.Input
	opt.Prompt.Input = func(_ context.Context, in config.Input) (vault.Secret, error) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, in)
		if in.ID == "nothing" {
			return vault.Secret{}, nil
		}
		return vault.NewSecret("answer to " + in.ID), nil
	}
	h := open(t, opt)
	if err := h.Secrets().Set(t.Context(), "s", vault.NewSecret("hush")); err != nil {
		t.Fatal(err)
	}
	srv := config.Server{Name: "x", Transport: config.TransportStdio, Command: "x", Env: map[string]string{"A": "${secret:s}", "B": "${input:asked}"}}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			got, err := srv.Resolve(t.Context(), h.placeholders)
			if err != nil || got.Env["A"] != "hush" || got.Env["B"] != "answer to asked" {
				t.Errorf("Resolve = %v, %v", got.Env, err)
			}
		})
	}
	wg.Wait()
	if len(asked) != 1 || asked[0].Description != "what it is" {
		t.Errorf("asked %+v, want once, with the description", asked)
	}
	for field, next := range map[string]string{"${secret:none}": "usher secret set none", "${input:nothing}": "usher secret set nothing"} {
		srv.Env = map[string]string{"A": field}
		if _, err := srv.Resolve(t.Context(), h.placeholders); err == nil || !strings.Contains(err.Error(), next) {
			t.Errorf("%s: %v, want the hint %q", field, err, next)
		}
	}
}

func TestKeySetting(t *testing.T) {
	dir, opt := home(t, map[string]string{"WHERE": "elsewhere.db", "K": "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="})
	opt.Config.Usher.Store = filepath.Join(dir, "${env:WHERE}")
	opt.Config.Usher.Key = "env:K"
	h := open(t, opt)
	if err := h.Secrets().Set(t.Context(), "s", vault.NewSecret("hush")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "elsewhere.db")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, keyFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a key file was made: %v", err)
	}
	for setting, want := range map[string]string{"file:key": "whole path", "file:~/key": ""} {
		opt.Config.Usher.Key = setting
		h, err := Open(t.Context(), opt)
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", setting, err, want)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		// Another key than the one in use is an error that says which it is.
		if _, err := h.Secrets().Get(t.Context(), "s"); !errors.Is(err, vault.ErrNoKey) && !errors.Is(err, vault.ErrWrongKey) {
			t.Errorf("%s: %v", setting, err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}
