package inspect

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/status"
)

// watcher shows one board after the other: redrawn in place on a terminal, what
// changed since the last one elsewhere.
type watcher struct {
	f    *cmdutil.Factory
	o    *statusOptions
	tty  bool
	last map[string]string
	json string
	page string
}

// Terminal sequences: another screen, so that what was on this one comes back.
const (
	otherScreen = "\x1b[?1049h"
	backAgain   = "\x1b[?1049l"
	topLeft     = "\x1b[H"
	clearLine   = "\x1b[K"
)

func newWatcher(f *cmdutil.Factory, o *statusOptions) *watcher {
	w := &watcher{f: f, o: o, tty: f.IO.OutTTY && !o.json, last: map[string]string{}}
	if w.tty {
		fmt.Fprint(f.IO.Out, otherScreen)
	}
	return w
}

func (w *watcher) show(b statusBoard, now time.Time) error {
	switch {
	case w.o.json:
		return w.showJSON(b)
	case w.tty:
		return w.draw(b, now)
	}
	return w.showChanges(b, now)
}

// draw writes over the last page without clearing it first, which would flicker.
func (w *watcher) draw(b statusBoard, now time.Time) error {
	w.page = b.Table(Look(w.f, now))
	for _, line := range append(b.footnotes(now), problemLines(b)...) {
		w.page += cmdutil.Truncate(cmdutil.Clean(line), w.f.IO.Width) + "\n"
	}
	foot := fmt.Sprintf("%s  %s  Ctrl-C to quit", now.Format(time.TimeOnly), cmdutil.CountOf(len(b.Ushers), "instance running", "instances running"))
	text := strings.ReplaceAll(w.page+foot, "\n", clearLine+"\n")
	_, err := fmt.Fprint(w.f.IO.Out, topLeft, text, clearLine, cmdutil.ClearBelow)
	return err
}

func problemLines(b statusBoard) []string {
	var out []string
	for _, p := range b.problems {
		out = append(out, p.Error())
	}
	return out
}

// showChanges prints a line for each server whose state or note is another one.
func (w *watcher) showChanges(b statusBoard, now time.Time) error {
	here := map[string]bool{}
	for i := range b.Servers {
		s := &b.Servers[i]
		line := strings.TrimRight(fmt.Sprintf("%s  %s  %s", cmdutil.Clean(s.AccountName()), status.Word(s.State), cmdutil.Clean(s.Note)), " ")
		here[s.AccountName()] = true
		if w.last[s.AccountName()] == line {
			continue
		}
		w.last[s.AccountName()] = line
		if _, err := fmt.Fprintln(w.f.IO.Out, now.Format(time.TimeOnly)+"  "+line); err != nil {
			return err
		}
	}
	for name := range w.last {
		if here[name] {
			continue
		}
		delete(w.last, name)
		if _, err := fmt.Fprintf(w.f.IO.Out, "%s  %s  gone\n", now.Format(time.TimeOnly), cmdutil.Clean(name)); err != nil {
			return err
		}
	}
	return nil
}

func (w *watcher) showJSON(b statusBoard) error {
	text, err := json.Marshal(b)
	if err != nil || string(text) == w.json {
		return err
	}
	w.json = string(text)
	return w.f.PrintJSONLine(b)
}

// end leaves the last page on the screen one came from.
func (w *watcher) end() {
	if w.tty {
		fmt.Fprint(w.f.IO.Out, backAgain, w.page)
	}
}
