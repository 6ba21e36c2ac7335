package server

import (
	"errors"
	"fmt"
	"strings"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
)

// listText shows what is broken on standard error, and the servers on standard
// output. A file that cannot be read comes first and alone: what is missing from
// the table would be easy to overlook.
func listText(f *cmdutil.Factory, cfg *config.Config, rows []cmdutil.ServerState, broken []error, o *listOptions) {
	fine := 0
	for _, r := range rows {
		if r.State != cmdutil.StateBroken {
			fine++
		}
	}
	if o.ok {
		for _, err := range broken {
			f.Note("left out: %s", cmdutil.Clean(f.ShortError(err).Error()))
		}
		listTable(f, rows, o)
		return
	}
	hidden := len(o.names) == 0 && unreadable(cfg)
	if !hidden {
		listTable(f, rows, o)
	}
	for _, err := range broken {
		var place *config.Error
		if short := f.ShortError(err); errors.As(short, &place) {
			f.Note("%s", cmdutil.Clean(place.Detail()))
		} else {
			f.Note("usher: %s", cmdutil.Clean(err.Error()))
		}
	}
	switch {
	case len(broken) == 0 && len(cfg.Servers) == 0:
		f.Note("no servers yet; bring in those you have with usher import, or usher add NAME URL")
	case hidden && fine > 0:
		f.Note("%s; usher list --ok shows %s", othersAreFine(fine), itOrThem(fine))
	case len(broken) > 0 && len(o.names) == 0 && fine > 0:
		f.Note("%s", othersAreFine(fine))
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

func listTable(f *cmdutil.Factory, rows []cmdutil.ServerState, o *listOptions) {
	if len(rows) == 0 {
		return
	}
	if o.long || o.resolve {
		listLong(f, rows)
		return
	}
	t := cmdutil.Table{Head: []string{"NAME", "TRANSPORT", "WHERE", "FROM", "STATE"}}
	width := 0
	if f.IO.OutTTY {
		width = f.IO.Width
	}
	for _, r := range rows {
		where := cmdutil.ServerAddress(r.Server)
		if width > 0 {
			where = cmdutil.Truncate(where, max(width/3, 24))
		}
		t.Add(config.Unquoted(r.Server.Name), transportWord(r), where, cmdutil.Clean(cmdutil.Origin(f, r.Server.Origin)), stateWord(r))
	}
	t.Write(f.IO.Out, width)
}

func transportWord(r cmdutil.ServerState) string {
	if r.Server.Transport == "" {
		return "–"
	}
	return string(r.Server.Transport)
}

func stateWord(r cmdutil.ServerState) string {
	if r.Reason == "" {
		return r.State
	}
	return r.State + ": " + cmdutil.CleanLine(r.Reason)
}

// listLong shows every field, a server after the other.
func listLong(f *cmdutil.Factory, rows []cmdutil.ServerState) {
	for i, r := range rows {
		if i > 0 {
			fmt.Fprintln(f.IO.Out)
		}
		for _, line := range r.Server.Describe() {
			if !strings.HasPrefix(line, "held back ") {
				fmt.Fprintln(f.IO.Out, line)
			}
		}
		fmt.Fprintf(f.IO.Out, "%-12s %s\n", "state", stateWord(r))
	}
}
