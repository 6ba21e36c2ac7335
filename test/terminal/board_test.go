package terminal

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/internal/fake"
)

// TestBoard logs in on terminals of two widths: rows change in place, addresses stay
// above and whole, a paste is taken while rows change, and the terminal is given back.
func TestBoard(t *testing.T) {
	for _, columns := range []int{80, 200} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			t.Parallel()
			testBoard(t, columns)
		})
	}
}

func testBoard(t *testing.T, columns int) {
	w := newWorld(t)
	one, two, shut, slow := w.as(), w.as(), w.as("register-status=403"), w.as()
	gate := make(chan struct{})
	slow.Intercept("metadata", func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		select {
		case <-gate:
		case <-r.Context().Done():
		}
		next.ServeHTTP(rw, r)
	})
	for name, as := range map[string]*fake.AuthServer{"figma": shut, "fly": slow, "linear": one, "notion": two, "sentry": one} {
		w.add(name, as)
	}
	s := w.open(columns, 40, "usher login --all --no-browser")
	want := func(columns int, rows ...string) {
		t.Helper()
		for i, row := range rows {
			rows[i] = cutTo(row, columns)
		}
		s.Await(func(screen string) string { return cmp.Diff(strings.Join(rows, "\n"), tail(board(screen), len(rows))) })
	}
	host := strings.TrimPrefix(shut.Issuer(), "http://")
	figma := fmt.Sprintf("  figma   ✖ failed: register a client at %[1]s: %[1]s answered HTTP 403: it does not register this client", host)
	const (
		foot = "%d of 5 connected. Ctrl-C is safe: consents stay, the rest can be resumed."
		hint = "paste> the address that a consent ends on, if that page does not load"
	)
	want(columns,
		figma,
		"  fly     … finding out where to log in N s",
		"  linear  … waiting for your consent N s",
		"  notion  … waiting for your consent N s",
		"  sentry  … waiting for your consent N s   same sign-in as linear",
		fmt.Sprintf(foot, 0), hint,
	)
	// The list does not wait for the server that hangs.
	s.Await(func(string) string { return cmp.Diff(3, len(addresses(s))) })
	pages := addresses(s)

	// A paste comes in two parts, rows change in between.
	back := landing(t, one, pages["sentry"])
	s.Paste(back[:60])
	close(gate)
	if err := visit(t.Context(), landing(t, two, pages["notion"])); err != nil {
		t.Fatal(err)
	}
	shown, _, _ := strings.Cut(back[:60], "?")
	want(columns,
		figma,
		"  fly     … waiting for your consent N s",
		"  linear  … waiting for your consent N s",
		"  notion  ✔ connected",
		"  sentry  … waiting for your consent N s   same sign-in as linear",
		fmt.Sprintf(foot, 1), "paste> "+shown+"?… (60 characters)",
	)
	s.Paste(back[60:])
	s.Type("Enter")
	want(columns,
		figma,
		"  fly     … waiting for your consent N s",
		"  linear  … waiting for your consent N s",
		"  notion  ✔ connected",
		"  sentry  ✔ connected",
		fmt.Sprintf(foot, 2), hint,
	)
	if strings.Contains(s.Joined(), "code=") {
		t.Error("a pasted code is shown")
	}

	// The window is made narrower and wider: nothing of the old rows stays.
	for _, columns := range []int{60, 50, 140, 80} {
		s.Resize(columns, 40)
		want(columns,
			figma,
			"  fly     … waiting for your consent N s",
			"  linear  … waiting for your consent N s",
			"  notion  ✔ connected",
			"  sentry  ✔ connected",
			fmt.Sprintf(foot, 2), hint,
		)
		s.Await(func(string) string { // not in the middle of being drawn again, that is
			all := s.Joined()
			for _, once := range []string{"\n  figma ", "\n  linear ", "\n  sentry ", " connected. Ctrl-C", "\npaste> "} {
				if n := strings.Count(all, once); n != 1 {
					return fmt.Sprintf("%d columns: rows of old remain (%q %d times)", columns, once, n)
				}
			}
			return ""
		})
	}
	s.Type("C-c")
	want(80,
		rest(figma, 80),
		"  fly     … waiting for your consent",
		"  linear  … waiting for your consent",
		"  notion  ✔ connected",
		"  sentry  ✔ connected",
		"2 logged in, 0 skipped, 1 failed, 2 waiting",
		"  next: usher doctor figma",
		"  to go on: usher login --missing fly linear",
		"exit code 1, icanon",
	)
}

// cutTo is a line as the board draws it at most.
func cutTo(line string, columns int) string {
	if r := []rune(line); len(r) > columns-1 {
		return string(r[:columns-2]) + "…"
	}
	return line
}

// rest is what of a line stands in the second row of a terminal.
func rest(line string, columns int) string { return string([]rune(line)[columns:]) }

// tail is the last n rows of a screen.
func tail(screen string, n int) string {
	rows := strings.Split(screen, "\n")
	return strings.Join(rows[max(len(rows)-n, 0):], "\n")
}
