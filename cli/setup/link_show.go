package setup

import (
	"fmt"
	"strings"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config/clients"
)

// linkList shows the clients on this machine and whether they start usher.
func linkList(f *cmdutil.Factory, l clients.Links, asJSON bool) error {
	survey, err := l.Survey()
	if err != nil {
		return err
	}
	program, _ := thisProgram() // unknown: no entry is called another's
	if asJSON {
		return f.PrintJSON(clientsJSON(survey, program))
	}
	t := cmdutil.Table{Head: []string{"CLIENT", "STATE", "SERVERS", "FILE"}}
	found, linked := 0, 0
	for _, p := range survey {
		if !p.Found {
			continue
		}
		found++
		state := linkState(p, program)
		servers := fmt.Sprint(p.Servers)
		if p.Err != nil {
			servers = "–"
		}
		if len(p.Linked) > 0 {
			linked++
		}
		t.Add(p.Client, state, servers, cmdutil.Clean(f.Short(p.File)))
	}
	if found == 0 {
		f.Note("no client was found on this machine")
		f.Note("next: usher link CLIENT makes the file of one")
		return nil
	}
	t.Write(f.IO.Out, 0)
	for _, p := range survey {
		if p.Err != nil {
			f.Note("%s: %v", p.Client, f.ShortError(p.Err))
		}
	}
	switch {
	case linked < found:
		f.Note("next: usher link CLIENT, or usher link --all")
	default:
		f.Note("all of them are linked; usher unlink undoes it")
	}
	return nil
}

// linkState says in a word whether a client starts usher.
func linkState(p clients.Presence, program string) string {
	switch {
	case p.Err != nil:
		return "unreadable"
	case len(p.Linked) == 0:
		return "not linked"
	}
	for _, at := range p.Linked {
		if at.Server.URL == "" && at.Server.Command != program && program != "" {
			return "linked to another usher"
		}
	}
	return "linked"
}

// showLinks prints what would change, as a diff without the clients' own lines:
// those may hold credentials.
func showLinks(f *cmdutil.Factory, w *linking) {
	if w.imports != nil && len(w.imports.Add) > 0 {
		fmt.Fprintf(f.IO.Out, "%s: %s\n", cmdutil.Clean(f.Short(w.imports.Target.File)), "imported into usher")
		importShow(f, w.imports)
		fmt.Fprintln(f.IO.Out)
	}
	for i, ch := range w.changes {
		if i > 0 {
			fmt.Fprintln(f.IO.Out)
		}
		showLink(f, ch)
	}
}

func showLink(f *cmdutil.Factory, ch *clients.Change) {
	out := f.IO.Out
	fmt.Fprintf(out, "%s  %s\n", ch.Client, cmdutil.Clean(f.Short(ch.File)))
	switch ch.Kind {
	case clients.LinkKeep:
		fmt.Fprintln(out, "  is linked already")
	case clients.LinkCreate, clients.LinkAdd, clients.LinkUpdate:
		if ch.Kind == clients.LinkCreate {
			fmt.Fprintln(out, "  a new file")
		}
		fmt.Fprintf(out, "@@ line %d @@\n", ch.Line)
		if ch.Was != "" {
			fmt.Fprintf(out, "- %s: %s\n", ch.Name, cmdutil.CleanLine(ch.Was))
		}
		showEntry(f, ch)
		for _, m := range ch.Moves {
			fmt.Fprintf(out, "- %s   moves into usher\n", cmdutil.CleanLine(m))
		}
	case clients.LinkRestore:
		fmt.Fprintln(out, "  becomes what it was before, byte for byte")
		for _, m := range ch.Moves {
			fmt.Fprintf(out, "+ %s   is restored\n", cmdutil.CleanLine(m))
		}
	case clients.LinkDelete:
		fmt.Fprintln(out, "  is deleted: link had made it")
	case clients.LinkRemove:
		fmt.Fprintf(out, "  has changed since: only the entry %s is taken out\n@@ line %d @@\n- %[1]s\n", ch.Name, ch.Line)
		for _, m := range ch.Moves {
			fmt.Fprintf(out, "+ %s   is restored\n", cmdutil.CleanLine(m))
		}
	case clients.LinkForget:
		fmt.Fprintln(out, "  the entry is gone already")
	}
	for _, n := range ch.Notes {
		f.Note("  %s", cmdutil.CleanLine(n))
	}
}

// showEntry prints our entry. JSON is indented as it is in the file, which is too
// much here.
func showEntry(f *cmdutil.Factory, ch *clients.Change) {
	lines := strings.Split(strings.ReplaceAll(ch.Entry, "\r\n", "\n"), "\n")
	margin := ""
	if strings.HasPrefix(ch.Entry, "{") {
		last := lines[len(lines)-1]
		margin = last[:len(last)-len(strings.TrimLeft(last, " \t"))]
		lines[0] = fmt.Sprintf("%q: %s", ch.Name, lines[0])
	}
	for _, line := range lines {
		fmt.Fprintf(f.IO.Out, "+ %s\n", cmdutil.Clean(strings.TrimPrefix(line, margin)))
	}
}

// applyLinks writes what was shown, and says so.
func applyLinks(f *cmdutil.Factory, w *linking) error {
	done, failed := w.apply()
	if w.imports != nil && len(w.imports.Add) > 0 && len(failed) == 0 {
		f.Note("imported %s into %s", cmdutil.Count(len(w.imports.Add), "server"), cmdutil.Clean(f.Short(w.imports.Target.File)))
	}
	linksSaid(f, w, done)
	return reportEach(f, append(w.failed, failed...))
}

// apply writes: first into usher, so that nothing leaves a client that has not
// arrived. A client that fails does not keep the others from it. It returns the
// titles of those that were written.
func (w *linking) apply() (done []string, failed []error) {
	if w.imports != nil && len(w.imports.Add) > 0 {
		if err := w.imports.Apply(); err != nil {
			return nil, []error{err}
		}
	}
	for _, ch := range w.changes {
		if err := ch.Apply(); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", ch.Client, err))
			continue
		}
		if ch.Writes() {
			done = append(done, ch.Title)
		}
	}
	return done, failed
}

// reportEach tells every failure with its own next step.
func reportEach(f *cmdutil.Factory, failed []error) error {
	for _, err := range failed {
		f.Report(err)
	}
	if len(failed) > 0 {
		return &cmdutil.SilentError{Code: cmdutil.ExitError}
	}
	return nil
}

// linksSaid tells what was done and what comes next.
func linksSaid(f *cmdutil.Factory, w *linking, done []string) {
	if len(done) == 0 {
		return
	}
	names := strings.Join(done, ", ")
	if w.undo {
		f.Note("unlinked %s; restart what is running", names)
		return
	}
	f.Note("linked %s; restart what is running", names)
	if !w.step {
		f.Note("next: usher status; undo it with usher unlink")
	}
}
