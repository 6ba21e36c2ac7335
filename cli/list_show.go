package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/usher-mcp/usher/config"
)

// listText shows what is broken on standard error, and the servers on standard
// output. A file that cannot be read comes first and alone: what is missing from
// the table would be easy to overlook.
func (a *factory) listText(cfg *config.Config, rows []listRow, broken []error, o listOptions) {
	fine := 0
	for _, r := range rows {
		if r.state != stateBroken {
			fine++
		}
	}
	if o.ok {
		for _, err := range broken {
			a.note("left out: %s", clean(a.shortError(err).Error()))
		}
		a.listTable(rows, o)
		return
	}
	hidden := len(o.names) == 0 && unreadable(cfg)
	if !hidden {
		a.listTable(rows, o)
	}
	for _, err := range broken {
		var place *config.Error
		if short := a.shortError(err); errors.As(short, &place) {
			a.note("%s", clean(place.Detail()))
		} else {
			a.note("usher: %s", clean(err.Error()))
		}
	}
	switch {
	case len(broken) == 0 && len(cfg.Servers) == 0:
		a.note("no servers yet; bring in those you have with usher import, or usher add NAME URL")
	case hidden && fine > 0:
		a.note("%s; usher list --ok shows %s", othersAreFine(fine), itOrThem(fine))
	case len(broken) > 0 && len(o.names) == 0 && fine > 0:
		a.note("%s", othersAreFine(fine))
	}
}

func unreadable(cfg *config.Config) bool {
	for _, f := range cfg.Files {
		if f.Err != nil {
			return true
		}
	}
	return false
}

func othersAreFine(n int) string {
	if n == 1 {
		return "the other server is fine"
	}
	return fmt.Sprintf("the other %d servers are fine", n)
}

func itOrThem(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

func (a *factory) listTable(rows []listRow, o listOptions) {
	if len(rows) == 0 {
		return
	}
	if o.long || o.resolve {
		a.listLong(rows)
		return
	}
	t := table{head: []string{"NAME", "TRANSPORT", "WHERE", "FROM", "STATE"}}
	width := 0
	if a.io.OutTTY {
		width = a.io.Width
	}
	for _, r := range rows {
		where := whereabouts(r.server)
		if width > 0 {
			where = cut(where, max(width/3, 24))
		}
		t.add(config.Unquoted(r.server.Name), transportWord(r), where, clean(a.origin(r.server.Origin)), stateWord(r))
	}
	t.write(a.io.Out, width)
}

func transportWord(r listRow) string {
	if r.server.Transport == "" {
		return "–"
	}
	return string(r.server.Transport)
}

func stateWord(r listRow) string {
	if r.reason == "" {
		return r.state
	}
	return r.state + ": " + cleanLine(r.reason)
}

// listLong shows every field, a server after the other.
func (a *factory) listLong(rows []listRow) {
	for i, r := range rows {
		if i > 0 {
			fmt.Fprintln(a.io.Out)
		}
		for _, line := range r.server.Describe() {
			if !strings.HasPrefix(line, "held back ") {
				fmt.Fprintln(a.io.Out, line)
			}
		}
		fmt.Fprintf(a.io.Out, "%-12s %s\n", "state", stateWord(r))
	}
}

// whereabouts is the address or the command line, in one line that shows what is
// there.
func whereabouts(s config.Server) string {
	if s.URL != "" {
		return word(s.URL)
	}
	if s.Command == "" {
		return "–"
	}
	words := []string{word(s.Command)}
	for _, arg := range s.Args {
		words = append(words, word(arg))
	}
	return strings.Join(words, " ")
}

// word quotes what would not be one plain word otherwise.
func word(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+=,~${}*?&#", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return config.Visible(s)
}
