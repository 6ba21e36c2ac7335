package cli

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/internal/fake"
)

var consentPage = regexp.MustCompile(`http://\S+/authorize\?\S+`)

// beginByPaste is the first step of a script: the address is printed and the login
// waits.
func beginByPaste(t *testing.T, run runIn, args ...string) (page string) {
	t.Helper()
	var errs bytes.Buffer
	if got := run(strings.NewReader(""), io.Discard, &errs, append([]string{"login", "notes", "--paste"}, args...)...); got != cmdutil.ExitWaiting {
		t.Fatalf("first step: exit code %d: %s", got, &errs)
	}
	if !strings.Contains(errs.String(), "usher login notes --paste") {
		t.Errorf("it does not say how to go on: %s", &errs)
	}
	page = consentPage.FindString(errs.String())
	if page == "" {
		t.Fatalf("no address: %s", &errs)
	}
	return page
}

// TestLoginResumedByPaste logs in with two commands, as a script does: the first
// prints the address, the second reads the answer to it from standard input.
func TestLoginResumedByPaste(t *testing.T) {
	for name, tt := range map[string]struct {
		flag   string
		answer func(back string) string
	}{
		"address":    {"--paste", func(back string) string { return back }},
		"no browser": {"--no-browser", func(back string) string { return back }},
	} {
		t.Run(name, func(t *testing.T) {
			as := fake.NewAuth(nil)
			run := loginHome(t, map[string]string{"notes": protected(t, as)})
			page := beginByPaste(t, run)
			var status bytes.Buffer
			run(nil, &status, &status, "status")
			if !strings.Contains(status.String(), "usher login notes --paste") {
				t.Errorf("status names no command that finishes it: %s", &status)
			}
			back, err := as.Consent(t.Context(), page)
			if err != nil {
				t.Fatal(err)
			}
			var errs bytes.Buffer
			if got := run(strings.NewReader(tt.answer(back.String())+"\n"), io.Discard, &errs, "login", "notes", tt.flag, "--wait", "30s"); got != cmdutil.ExitOK {
				t.Fatalf("second step: exit code %d: %s", got, &errs)
			}
			if again := consentPage.FindString(errs.String()); again != "" && again != page {
				t.Errorf("it began another login: %s", again)
			}
			if n := len(as.Requests(fake.EventRegister, "")); n != 1 {
				t.Errorf("%d clients registered", n)
			}
			if got := run(nil, io.Discard, io.Discard, "call", "notes", "add", "a=1", "b=2"); got != cmdutil.ExitOK {
				t.Errorf("call: exit code %d", got)
			}
		})
	}
}

// TestLoginResumedWithOlderAnswer has two logins of one account wait: the answer to
// either is taken, and an answer that fits neither is an error.
func TestLoginResumedWithOlderAnswer(t *testing.T) {
	as := fake.NewAuth(nil)
	run := loginHome(t, map[string]string{"notes": protected(t, as)})
	first := beginByPaste(t, run)
	second := beginByPaste(t, run, "--scope", "extra")
	if first == second {
		t.Fatal("a login with more scopes is another one")
	}
	var errs bytes.Buffer
	wrong := "http://127.0.0.1:1/callback?code=abcdef&state=unknown\n"
	if got := run(strings.NewReader(wrong), io.Discard, &errs, "login", "notes", "--paste"); got != cmdutil.ExitError {
		t.Errorf("an answer to no login: exit code %d: %s", got, &errs)
	}
	back, err := as.Consent(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	errs.Reset()
	if got := run(strings.NewReader(back.String()+"\n"), io.Discard, &errs, "login", "notes", "--paste"); got != cmdutil.ExitOK {
		t.Errorf("the answer to the older login: exit code %d: %s", got, &errs)
	}
}

// TestLoginFinishedFromAnotherTerminal has one command wait for the answer, which is
// pasted into another one: both end well.
func TestLoginFinishedFromAnotherTerminal(t *testing.T) {
	as := fake.NewAuth(nil)
	run := loginHome(t, map[string]string{"notes": protected(t, as), "mail": protected(t, as)})
	in, keepOpen := io.Pipe()
	said, errw := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(in, io.Discard, errw, "login", "notes", "--no-browser", "--wait", "60s")
		_ = errw.Close()
	}()
	var seen strings.Builder
	buf := make([]byte, 4096)
	page := ""
	for page == "" {
		n, err := said.Read(buf)
		seen.Write(buf[:n])
		if at := consentPage.FindString(seen.String()); strings.Contains(seen.String(), at+"\n") {
			page = at
		}
		if err != nil {
			t.Fatalf("no address: %s", seen.String())
		}
	}
	go func() { _, _ = io.Copy(io.Discard, said) }() // ends with the command
	back, err := as.Consent(t.Context(), page)
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	if got := run(strings.NewReader(back.String()+"\n"), io.Discard, &errs, "login", "mail", "--paste"); got != cmdutil.ExitError {
		t.Errorf("another account took the answer: exit code %d: %s", got, &errs)
	}
	errs.Reset()
	if got := run(strings.NewReader(back.String()+"\n"), io.Discard, &errs, "login", "notes", "--paste"); got != cmdutil.ExitOK {
		t.Errorf("exit code %d: %s", got, &errs)
	}
	if got := <-code; got != cmdutil.ExitOK {
		t.Errorf("the command that waited: exit code %d", got)
	}
	_ = keepOpen.Close()
}
