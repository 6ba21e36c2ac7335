package inspect

import (
	"fmt"
	"strings"
	"time"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/status"
)

// look is how a table is drawn.
type look struct {
	now    time.Time
	width  int // 0: as wide as it gets
	colour bool
}

// Look is how the terminal wants the board drawn.
func Look(f *cmdutil.Factory, now time.Time) look {
	return look{now: now, width: f.TableWidth(), colour: f.IO.Colour()}
}

// colourOf is the SGR code of a state: green works, yellow waits, red is broken.
func colourOf(state host.State) string {
	switch state {
	case host.Connected:
		return "32"
	case host.Connecting, host.NeedsAuth, status.Held:
		return "33"
	case host.Failed, host.Ejected, status.Broken:
		return "31"
	}
	return "2"
}

// How wide the other columns that could grow get on a terminal.
const (
	maxAuthColumn = 24
	minAuthColumn = 9
	minNoteColumn = 24
)

// Table draws the board. On a terminal no line is wider than it: a note that does
// not fit stands below its row.
func (b *statusBoard) Table(l look) string {
	head := []string{"NAME", "STATE", "AUTH", "TOOLS", "LAST CALL"}
	rows := [][]string{head}
	for i := range b.Servers {
		rows = append(rows, b.Servers[i].cells(l))
	}
	wide := make([]int, len(head))
	for _, row := range rows {
		for i, cell := range row {
			wide[i] = max(wide[i], cmdutil.TextWidth(cell))
		}
	}
	if l.width > 0 {
		wide[0] = min(wide[0], cmdutil.MaxNameColumn)
		rest := l.width - wide[0] - wide[1] - wide[3] - wide[4] - 4*2
		wide[2] = min(wide[2], max(min(maxAuthColumn, rest), minAuthColumn))
	}
	used := 0
	for _, w := range wide {
		used += w + 2
	}
	var out strings.Builder
	for i, row := range rows {
		note := "NOTE"
		paint := ""
		if i > 0 {
			note = cmdutil.Clean(b.Servers[i-1].Note)
			if l.colour {
				paint = colourOf(b.Servers[i-1].State)
			}
		}
		writeStatusRow(&out, row, wide, note, used, l.width, paint)
	}
	return out.String()
}

func writeStatusRow(out *strings.Builder, row []string, wide []int, note string, used, width int, paint string) {
	var line strings.Builder
	for i, cell := range row {
		cell = cmdutil.Truncate(cell, wide[i])
		gap := strings.Repeat(" ", wide[i]-cmdutil.TextWidth(cell)+2)
		if i == 1 && paint != "" {
			cell = "\x1b[" + paint + "m" + cell + "\x1b[0m"
		}
		line.WriteString(cell + gap)
	}
	switch room := width - used; {
	case note == "", width == 0, cmdutil.TextWidth(note) <= room:
		fmt.Fprintln(out, strings.TrimRight(line.String()+note, " "))
	case room >= minNoteColumn && cmdutil.TextWidth(note) > width-2:
		fmt.Fprintln(out, line.String()+cmdutil.Truncate(note, room))
	default:
		fmt.Fprintln(out, strings.TrimRight(line.String(), " "))
		fmt.Fprintln(out, "  "+cmdutil.Truncate(note, width-2))
	}
}

func (s *statusServer) cells(l look) []string {
	return []string{config.Unquoted(s.AccountName()), status.Word(s.State), s.authText(l.now), s.toolsText(), ago(l.now, s.LastCall)}
}

// authText is where the login stands, in a few words.
func (s *statusServer) authText(now time.Time) string {
	switch s.Auth.State {
	case host.AuthOK:
		text := "ok"
		if !s.Auth.Expires.IsZero() {
			text += ", " + Spoken(s.Auth.Expires.Sub(now))
		}
		if s.Auth.CanRefresh {
			text += ", refreshes"
		}
		return text
	case host.AuthPending:
		return "waiting for you"
	case host.AuthNeedsLogin:
		if s.Auth.Reason != "" {
			return oneLine(s.Auth.Reason)
		}
		return "needs login"
	}
	return "–"
}

// toolsText is the number of tools, with a star when it is only last known.
func (s *statusServer) toolsText() string {
	if s.Tools == 0 && s.ProtocolVersion == "" {
		return fmt.Sprintf("%5s", "–")
	}
	return fmt.Sprintf("%5d%s", s.Tools, s.star())
}

func (s *statusServer) star() string {
	switch s.State {
	case host.Failed, host.NeedsAuth, host.Ejected:
		return "*"
	}
	if s.Stale {
		return "*"
	}
	return ""
}

// footnotes explain what the table shows, where it needs that.
func (b *statusBoard) footnotes(now time.Time) []string {
	var out []string
	for i := range b.Servers {
		if strings.HasSuffix(b.Servers[i].toolsText(), "*") {
			out = append(out, "* last known")
			break
		}
	}
	for _, u := range b.Ushers {
		if u.Store != nil {
			out = append(out, cmdutil.CleanLine(fmt.Sprintf("instance %d: store unreachable since %s; calls with valid logins continue: %s", u.PID, ago(now, u.Store.Since), u.Store.Problem)))
		}
	}
	for _, w := range b.Waiting {
		if w.Removed {
			out = append(out, fmt.Sprintf("1 login waiting: %s (started %s), but its server is not configured any more: %s", w.Account, ago(now, w.Started), w.Command))
			continue
		}
		out = append(out, fmt.Sprintf("1 login waiting: %s (started %s) – finish it: %s", w.Account, ago(now, w.Started), w.Command))
	}
	for _, name := range b.Orphans {
		out = append(out, fmt.Sprintf("%s is logged in, but not configured any more: usher logout %[1]s", name))
	}
	for _, budget := range b.Budgets {
		if budget.Server == "" {
			out = append(out, "all servers together: "+budgetText(budget))
		}
	}
	return out
}

// ago says how long something is past.
func ago(now, then time.Time) string {
	if then.IsZero() {
		return "–"
	}
	d := now.Sub(then)
	if d < 5*time.Second {
		return "now"
	}
	return Spoken(d) + " ago"
}

// Spoken is a duration as people say it: its largest unit.
func Spoken(d time.Duration) string { return status.Approx(d) }
