package login

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/cli/cmdutil"
)

// boardView is the board of many logins at one moment.
type boardView struct {
	rows   []bulk.Row
	now    time.Time
	colour bool
	prompt bool   // pastes are taken
	typed  string // so far, as it may be shown
}

// How wide columns get.
const (
	maxBoardName = 24
	phaseColumn  = 29 // "… finding out where to log in"
)

// lines draws the board for a terminal: no line is wider, and they are never more than
// it has rows. Those that a person need not look at are left out first.
// The cursor belongs so many columns before the end of the last one.
func (v boardView) lines(cols, height int) (out []string, before int) {
	foot := []string{cmdutil.Truncate(v.footer(), cols-1)}
	if v.prompt {
		line, n := v.promptLine(cols - 1)
		foot, before = append(foot, line), n
	}
	shown, hidden := v.fit(height - 1 - len(foot))
	name := 0
	for _, r := range shown {
		name = max(name, cmdutil.TextWidth(cmdutil.CleanLine(r.Server)))
	}
	name = min(name, maxBoardName, max(cols/3, 8))
	for _, r := range shown {
		out = append(out, v.row(r, name, cols-1))
	}
	if len(hidden) > 0 {
		out = append(out, v.dim(cmdutil.Truncate("  … and "+countPhases(hidden), cols-1)))
	}
	return append(out, foot...), before
}

// promptLine is where pastes go. The end of what is typed is seen, as everywhere; as
// long as there is nothing, a hint stands behind the cursor.
func (v boardView) promptLine(width int) (line string, before int) {
	const prompt, hint = "paste> ", "the address that a consent ends on, if that page does not load"
	room := width - len(prompt)
	if v.typed == "" {
		words := cutRight(hint, room)
		return prompt + v.dim(words), cmdutil.TextWidth(words)
	}
	if cmdutil.TextWidth(v.typed) <= room {
		return prompt + v.typed, 0
	}
	tail := []rune(v.typed)
	for len(tail) > 0 && cmdutil.TextWidth(string(tail)) > max(room-1, 1) {
		tail = tail[1:]
	}
	return prompt + "…" + string(tail), 0
}

// fit picks the rows that n lines have room for, in their order.
func (v boardView) fit(n int) (shown, hidden []bulk.Row) {
	if len(v.rows) <= n {
		return v.rows, nil
	}
	order := make([]int, len(v.rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return weight(v.rows[i].Phase) - weight(v.rows[j].Phase) })
	keep := order[:max(n-1, 0)] // one line says what is left out
	for i, r := range v.rows {
		if slices.Contains(keep, i) {
			shown = append(shown, r)
		} else {
			hidden = append(hidden, r)
		}
	}
	return shown, hidden
}

// weight orders phases by how much a person must see them.
func weight(p bulk.Phase) int {
	return slices.Index([]bulk.Phase{
		bulk.PhaseAwaiting, bulk.PhaseFailed, bulk.PhaseExchanging, bulk.PhaseDiscovering,
		bulk.PhaseQueued, bulk.PhaseConnected, bulk.PhaseSkipped,
	}, p)
}

// row is one login: who, how far, since when, and what it shares.
func (v boardView) row(r bulk.Row, name, width int) string {
	server := cmdutil.Truncate(cmdutil.CleanLine(r.Server), name)
	head := "  " + server + strings.Repeat(" ", name-cmdutil.TextWidth(server)) + "  "
	words := rowWords(r)
	room := width - cmdutil.TextWidth(head)
	if room < 4 {
		return cmdutil.Truncate(head, width)
	}
	if r.Phase.Ended() {
		return head + v.paint(r.Phase, cmdutil.Truncate(words, room))
	}
	tail := fmt.Sprintf("  %6s", since(v.now.Sub(r.Since)))
	if other := v.sameSignIn(r); other != "" {
		tail += "   same sign-in as " + cmdutil.CleanLine(other)
	}
	words = cmdutil.Truncate(words, room)
	gap := strings.Repeat(" ", max(phaseColumn-cmdutil.TextWidth(words), 0))
	return head + v.paint(r.Phase, words) + v.dim(cutRight(gap+tail, room-cmdutil.TextWidth(words)))
}

// cutRight is Truncate, and leaves nothing at all where there is no room for a word.
func cutRight(s string, n int) string {
	if n < 8 {
		return ""
	}
	return strings.TrimRight(cmdutil.Truncate(s, n), " ")
}

// sameSignIn names an earlier row that waits at the same authorization server: the
// second consent there is usually one click.
func (v boardView) sameSignIn(r bulk.Row) string {
	if r.Phase != bulk.PhaseAwaiting || r.Issuer == "" {
		return ""
	}
	for _, other := range v.rows {
		if other.Account == r.Account {
			return ""
		}
		if other.Issuer == r.Issuer && (other.Phase == bulk.PhaseAwaiting || other.Phase == bulk.PhaseConnected) {
			return other.Server
		}
	}
	return ""
}

func since(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%d s", max(int(d.Seconds()), 0))
	}
	return fmt.Sprintf("%d min", int(d.Minutes()))
}

// footer is the last line but the prompt: how far all of them are together.
func (v boardView) footer() string {
	var connected, wanted int
	for _, r := range v.rows {
		if r.Phase == bulk.PhaseConnected {
			connected++
		}
		if r.Phase != bulk.PhaseSkipped {
			wanted++
		}
	}
	return fmt.Sprintf("%d of %d connected. Ctrl-C is safe: consents stay, the rest can be resumed.", connected, wanted)
}

// countPhases says how many of each kind there are.
func countPhases(rows []bulk.Row) string {
	var parts []string
	for _, p := range []struct {
		phase bulk.Phase
		words string
	}{
		{bulk.PhaseAwaiting, "waiting for your consent"},
		{bulk.PhaseFailed, "failed"},
		{bulk.PhaseExchanging, "almost there"},
		{bulk.PhaseDiscovering, "being looked up"},
		{bulk.PhaseQueued, "whose turn comes"},
		{bulk.PhaseConnected, "connected"},
		{bulk.PhaseSkipped, "skipped"},
	} {
		n := 0
		for _, r := range rows {
			if r.Phase == p.phase {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, p.words))
		}
	}
	return strings.Join(parts, ", ")
}

// last is what stays when the board ends: every row, whole.
func (v boardView) last() string {
	name := 0
	for _, r := range v.rows {
		name = max(name, cmdutil.TextWidth(cmdutil.CleanLine(r.Server)))
	}
	var b strings.Builder
	for _, r := range v.rows {
		server := cmdutil.CleanLine(r.Server)
		fmt.Fprintf(&b, "  %s%s  %s\n", server, strings.Repeat(" ", name-cmdutil.TextWidth(server)), v.paint(r.Phase, rowWords(r)))
	}
	return b.String()
}

// rowWords says how far a login is; the row says whose it is already.
func rowWords(r bulk.Row) string {
	return phaseWords(r.Phase, strings.TrimPrefix(r.Detail, "log in to "+r.Server+": "))
}

func phaseWords(p bulk.Phase, detail string) string {
	words := map[bulk.Phase]string{
		bulk.PhaseQueued: "… its turn comes", bulk.PhaseDiscovering: "… finding out where to log in",
		bulk.PhaseAwaiting: "… waiting for your consent", bulk.PhaseExchanging: "… almost there",
		bulk.PhaseConnected: "✔ connected", bulk.PhaseFailed: "✖ failed", bulk.PhaseSkipped: "– skipped",
	}[p]
	if detail != "" {
		words += ": " + detail
	}
	return cmdutil.CleanLine(words)
}

// paint colours what is said of a phase: green works, yellow waits, red is broken.
func (v boardView) paint(p bulk.Phase, text string) string {
	switch p {
	case bulk.PhaseConnected:
		return v.sgr("32", text)
	case bulk.PhaseAwaiting:
		return v.sgr("33", text)
	case bulk.PhaseFailed:
		return v.sgr("31", text)
	}
	return v.dim(text)
}

func (v boardView) dim(text string) string { return v.sgr("2", text) }

func (v boardView) sgr(code, text string) string {
	if !v.colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
