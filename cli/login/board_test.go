package login

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/cli/cmdutil"
)

// boardRow is a login for a board that is looked at a minute after it began.
func boardRow(server string, phase bulk.Phase, detail, issuer string, ago time.Duration) bulk.Row {
	return bulk.Row{
		Event:   bulk.Event{Server: server, Phase: phase, Detail: detail},
		Account: auth.Account{Server: server}, Issuer: issuer, Since: time.Unix(1000, 0).Add(-ago),
	}
}

func boardOf(rows ...bulk.Row) boardView {
	return boardView{rows: rows, now: time.Unix(1000, 0), prompt: true}
}

func TestBoardRows(t *testing.T) {
	v := boardOf(
		boardRow("notion", bulk.PhaseConnected, "", "https://notion.example", 0),
		boardRow("linear", bulk.PhaseAwaiting, "", "https://as.example", 12*time.Second),
		boardRow("sentry", bulk.PhaseAwaiting, "", "https://as.example", 3*time.Minute),
		boardRow("figma", bulk.PhaseFailed, "log in to figma: the server refused to register a client (403)", "", 0),
		boardRow("github", bulk.PhaseSkipped, "already connected", "", 0),
		boardRow("fly", bulk.PhaseDiscovering, "", "", 0),
		boardRow("\x1b[2Jevil\n", bulk.PhaseQueued, "", "", 0),
	)
	for _, tt := range []struct {
		cols, height int
		want         string
	}{
		{80, 24, `
  notion         ✔ connected
  linear         … waiting for your consent       12 s
  sentry         … waiting for your consent      3 min   same sign-in as linear
  figma          ✖ failed: the server refused to register a client (403)
  github         – skipped: already connected
  fly            … finding out where to log in     0 s
  \u001b[2Jevil  … its turn comes                  0 s
1 of 6 connected. Ctrl-C is safe: consents stay, the rest can be resumed.
paste> the address that a consent ends on, if that page does not load`},
		{40, 7, `
  linear  … waiting for your consent
  sentry  … waiting for your consent
  figma   ✖ failed: the server refused…
  … and 1 being looked up, 1 whose tur…
1 of 6 connected. Ctrl-C is safe: cons…
paste> the address that a consent ends…`},
	} {
		lines, before := v.lines(tt.cols, tt.height)
		got := "\n" + strings.Join(lines, "\n")
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%d × %d (-want +got):\n%s", tt.cols, tt.height, diff)
		}
		if prompt := lines[len(lines)-1]; cmdutil.TextWidth(prompt)-before != len("paste> ") {
			t.Errorf("the cursor is %d columns before the end of %q", before, prompt)
		}
	}
}

// A board fits every terminal: lines are narrower than it, and fewer.
func TestBoardFits(t *testing.T) {
	phases := []bulk.Phase{
		bulk.PhaseQueued, bulk.PhaseDiscovering, bulk.PhaseAwaiting, bulk.PhaseExchanging, bulk.PhaseConnected, bulk.PhaseFailed, bulk.PhaseSkipped,
	}
	for _, n := range []int{0, 1, 7, 50} {
		var rows []bulk.Row
		for i := range n {
			rows = append(rows, boardRow(fmt.Sprintf("服务器-%d-with-a-name-that-is-long", i), phases[i%len(phases)], strings.Repeat("wörds ", i), "https://as.example", time.Duration(i)*time.Minute))
		}
		v := boardOf(rows...)
		v.colour = true
		for _, typed := range []string{"", "x", strings.Repeat("日本", 200)} {
			v.typed = typed
			for _, cols := range []int{10, 20, 40, 80, 200} {
				for _, height := range []int{4, 10, 24, 100} {
					lines, _ := v.lines(cols, height)
					if len(lines) > height-1 {
						t.Errorf("%d rows on %d × %d: %d lines", n, cols, height, len(lines))
					}
					for _, line := range lines {
						if w := cmdutil.TextWidth(cmdutil.Plain(line)); w >= cols {
							t.Errorf("%d rows on %d × %d: %d columns: %q", n, cols, height, w, line)
						}
					}
				}
			}
		}
	}
}

// When there is no room for all, those that wait for the person are seen first.
func TestBoardLeavesOut(t *testing.T) {
	var rows []bulk.Row
	for i := range 40 {
		rows = append(rows, boardRow(fmt.Sprintf("done%d", i), bulk.PhaseConnected, "", "", 0))
	}
	rows = append(rows, boardRow("late", bulk.PhaseAwaiting, "", "", 0))
	lines, _ := boardOf(rows...).lines(80, 10)
	if !slices.ContainsFunc(lines, func(s string) bool { return strings.HasPrefix(s, "  late") }) || lines[6] != "  … and 35 connected" {
		t.Errorf("lines %q", lines)
	}
	if all := boardOf(rows...).last(); strings.Count(all, "✔ connected\n") != 40 {
		t.Errorf("what stays: %s", all)
	}
}

// What is written while there is a live part comes above it, in whole lines.
func TestLiveWritesAbove(t *testing.T) {
	var out bytes.Buffer
	cols := 20
	l := &cmdutil.Live{Out: &out, Size: func() (int, int) { return cols, 10 }}
	fmt.Fprintln(l, "before")
	two := func(int, int) ([]string, int) { return []string{"one", "two"}, 0 }
	l.Draw(two)
	fmt.Fprint(l, "half ")
	if got := out.String(); strings.Contains(got, "half") {
		t.Errorf("an unfinished line is shown: %q", got)
	}
	out.Reset()
	fmt.Fprint(l, "whole\nrest")
	const wiped = "\r\x1b[1A\x1b[2K\r\n\x1b[2K\x1b[J\r\x1b[1A"
	if got, want := out.String(), cmdutil.HoldScreen+wiped+"half whole\r\n\x1b[2Kone\r\n\x1b[2Ktwo\x1b[J"+cmdutil.ShowScreen; got != want {
		t.Errorf("above:\n got %q\nwant %q", got, want)
	}
	out.Reset()
	l.Draw(two)
	if out.Len() > 0 {
		t.Errorf("what did not change was drawn again: %q", &out)
	}
	l.End("last\n")
	if got, want := out.String(), wiped+"last\r\nrest"; got != want {
		t.Errorf("end:\n got %q\nwant %q", got, want)
	}
	out.Reset()
	fmt.Fprintln(l, "after")
	if out.String() != "after\n" {
		t.Errorf("after the end: %q", &out)
	}
}
