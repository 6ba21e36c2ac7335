//go:build unix

package process

import (
	"bytes"
	"io"
	"os"
	"testing"
)

// heldPipe has something in it, and an end that nobody closes.
func heldPipe(t *testing.T, text string) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Close()
		w.Close()
	})
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	return r
}

// Whoever comes to read only when the time for that is over, as happens where a machine
// has much else to do, is given what the child has said.
func TestLateReader(t *testing.T) {
	o := newOutput(heldPipe(t, "last words"))
	wake(o.f)
	type heard struct {
		text []byte
		err  error
	}
	read := make(chan heard, 1)
	go func() {
		text, err := io.ReadAll(o)
		read <- heard{text, err}
	}()
	o.finish()
	if got := <-read; string(got.text) != "last words" || got.err != nil {
		t.Errorf("read %q, %v", got.text, got.err)
	}
}

func TestReadRest(t *testing.T) {
	f := heldPipe(t, "last words")
	wake(f)
	var rest bytes.Buffer
	if readRest(&rest, f); rest.String() != "last words" {
		t.Errorf("read %q", &rest)
	}
}
