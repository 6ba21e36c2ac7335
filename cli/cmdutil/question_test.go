package cmdutil

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestConfirm(t *testing.T) {
	for _, tt := range []struct {
		typed string
		want  bool
	}{
		{"y\n", true}, {"Yes \r\n", true}, {"YES", true}, {"n\n", false}, {"\n", false}, {"", false}, {"yep\n", false}, {"no\ny\n", false},
	} {
		var said strings.Builder
		f := &Factory{IO: IO{In: strings.NewReader(tt.typed), Err: &said, InTTY: true}}
		got, err := f.Confirm(t.Context(), "really\x1b[2K?")
		if got != tt.want || err != nil {
			t.Errorf("confirm with %q typed = %v, %v; want %v", tt.typed, got, err, tt.want)
		}
		if !strings.HasPrefix(said.String(), `really\u001b[2K? [y/N] `) {
			t.Errorf("asked %q", said.String())
		}
	}
	f := &Factory{IO: IO{In: strings.NewReader("y\n"), Err: io.Discard}}
	if got, err := f.Confirm(t.Context(), "?"); got || !errors.Is(err, ErrNoTerminal) || ExitCode(err) != ExitWaiting {
		t.Errorf("without a terminal: %v, %v", got, err)
	}
}

// TestConfirmInterrupted wants that Ctrl-C ends a question that nobody answers.
func TestConfirmInterrupted(t *testing.T) {
	in, typing := io.Pipe()
	defer typing.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	asked := make(chan struct{})
	go func() {
		<-asked
		interrupt()
	}()
	f := &Factory{IO: IO{In: in, Err: signalWriter{asked}, InTTY: true}}
	got, err := f.Confirm(ctx, "?")
	if got || ExitCode(err) != exitStopped {
		t.Errorf("confirm = %v, %v; want exit code %d", got, err, exitStopped)
	}
}

// signalWriter closes a channel at the first write that asks something.
type signalWriter struct{ asked chan struct{} }

func (s signalWriter) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "[y/N]") {
		close(s.asked)
	}
	return len(p), nil
}

func TestReadLineLeavesTheRest(t *testing.T) {
	r := strings.NewReader("one\ntwo\nthree")
	for _, want := range []string{"one", "two", "three"} {
		if got, _ := readLine(r); got != want {
			t.Errorf("readLine = %q, want %q", got, want)
		}
	}
}
