package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/usher-mcp/usher/process"
	"github.com/usher-mcp/usher/test/docs/standin"
)

type runner func() int

func (r runner) Run() int { return r() }

func TestMain(m *testing.M) {
	process.Main()
	testscript.Main(runner(func() int {
		code := m.Run()
		if err := goleak.Find(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, "goleak:", err)
			code = 1
		}
		return code
	}), map[string]func(){
		"npx": func() { syscall.Exit(standin.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// TestRun runs the program of docs/embedding.md.
func TestRun(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Chdir(t.TempDir())
	if err := os.WriteFile(filepath.Join(".", "hello.txt"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "hello"; !bytes.Contains(out.Bytes(), []byte(want)) {
		t.Errorf("printed %s, want %s in it", got, want)
	}
}
