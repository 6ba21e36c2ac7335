package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/test/need"
)

// TestLoginDrivenByAnotherProgram has a program in another language drive fifty logins
// through standard input and output: addresses, objects and cancellations.
func TestLoginDrivenByAnotherProgram(t *testing.T) {
	node := need.Node(t)
	servers := map[string]string{}
	by := []*fake.AuthServer{fake.NewAuth(&fake.AuthOptions{Name: "one"}), fake.NewAuth(&fake.AuthOptions{Name: "two"})}
	for i := range 50 {
		servers[fmt.Sprintf("s%02d", i)] = protected(t, by[i%2])
	}
	home := t.TempDir()
	loginAt(t, home, servers)
	cmd := exec.CommandContext(t.Context(), node, "testdata/drive.mjs", usherProgram(t))
	cmd.Env = []string{"USHER_HOME=" + home, "HOME=" + home, "GORACE=atexit_sleep_ms=0", "PATH=" + os.Getenv("PATH")}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, &errs)
	}
	want := `{"code":1,"ended":{"connected":45,"failed":5,"skipped":0},"replies":{"accepted":50,"rejected":0}}`
	if got := strings.TrimSpace(out.String()); got != want {
		t.Errorf("got %s, want %s\n%s", got, want, &errs)
	}
	traded := 0
	for _, as := range by {
		traded += len(as.Requests(fake.EventToken, "authorization_code"))
	}
	if traded != 45 {
		t.Errorf("%d codes were exchanged, want 45", traded)
	}
}

// TestLoginEventsOfOne wants the lines of one server to have what those of many have.
func TestLoginEventsOfOne(t *testing.T) {
	as := fake.NewAuth(nil)
	run := loginHome(t, map[string]string{"notes": protected(t, as)})
	var first bytes.Buffer
	if got := run(strings.NewReader(""), &first, &first, "login", "notes", "--paste", "--json"); got != cmdutil.ExitWaiting {
		t.Fatalf("exit code %d: %s", got, &first)
	}
	back, err := as.Consent(t.Context(), consentPage.FindString(strings.ReplaceAll(first.String(), `"`, " ")))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if got := run(strings.NewReader(back.String()+"\n"), &out, &out, "login", "notes", "--paste", "--json"); got != cmdutil.ExitOK {
		t.Fatalf("exit code %d: %s", got, &out)
	}
	last := -1
	for _, want := range []string{`"phase":"discovering"`, `"phase":"awaiting_consent"`, `"phase":"exchanging"`, `"phase":"connected"`} {
		at := strings.Index(out.String(), want)
		if at <= last {
			t.Errorf("%s is not where it should be in\n%s", want, &out)
		}
		last = at
	}
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, `"event"`) && (!strings.Contains(line, `"server_url":"http`) || !strings.Contains(line, `"seconds":`)) {
			t.Errorf("event %s", line)
		}
	}
	if !strings.Contains(out.String(), `{"type":"input","line":1,"status":"accepted","server":"notes"}`) {
		t.Errorf("no reply in\n%s", &out)
	}
}
