//go:build unix

package process

import (
	"bytes"
	"io"
	"os"
	"sync"
	"testing"
	"testing/synctest"
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
	synctest.Test(t, func(t *testing.T) { // to know who waits for the turn
		o := newOutput(heldPipe(t, "last words"))
		<-o.turn
		var text []byte
		var err error
		var wg sync.WaitGroup
		wg.Go(func() { text, err = io.ReadAll(o) })
		synctest.Wait()
		wg.Go(o.finish)
		synctest.Wait()
		o.turn <- struct{}{}
		wg.Wait()
		if string(text) != "last words" || err != nil {
			t.Errorf("read %q, %v", text, err)
		}
	})
}

func TestReadRest(t *testing.T) {
	f := heldPipe(t, "last words")
	wake(f)
	var rest bytes.Buffer
	if readRest(&rest, f); rest.String() != "last words" {
		t.Errorf("read %q", &rest)
	}
}
