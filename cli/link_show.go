package cli

import (
	"fmt"
	"strings"

	"github.com/usher-mcp/usher/config/clients"
)

// linkList shows the clients on this machine and whether they start usher.
func (a *factory) linkList(l clients.Links, asJSON bool) error {
	survey, err := l.Survey()
	if err != nil {
		return err
	}
	program, _ := thisProgram() // unknown: no entry is called another's
	if asJSON {
		return a.printJSON(clientsJSON(survey, program))
	}
	t := table{head: []string{"CLIENT", "STATE", "SERVERS", "FILE"}}
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
		t.add(p.Client, state, servers, clean(a.short(p.File)))
	}
	if found == 0 {
		a.note("no client was found on this machine")
		a.note("next: usher link CLIENT makes the file of one")
		return nil
	}
	t.write(a.io.Out, 0)
	for _, p := range survey {
		if p.Err != nil {
			a.note("%s: %v", p.Client, a.shortError(p.Err))
		}
	}
	switch {
	case linked < found:
		a.note("next: usher link CLIENT, or usher link --all")
	default:
		a.note("all of them are linked; usher unlink undoes it")
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
func (a *factory) showLinks(w *linking) {
	if w.imports != nil && len(w.imports.Add) > 0 {
		fmt.Fprintf(a.io.Out, "%s: %s\n", clean(a.short(w.imports.Target.File)), "imported into usher")
		a.importShow(w.imports)
		fmt.Fprintln(a.io.Out)
	}
	for i, ch := range w.changes {
		if i > 0 {
			fmt.Fprintln(a.io.Out)
		}
		a.showLink(ch)
	}
}

func (a *factory) showLink(ch *clients.Change) {
	out := a.io.Out
	fmt.Fprintf(out, "%s  %s\n", ch.Client, clean(a.short(ch.File)))
	switch ch.Kind {
	case clients.LinkKeep:
		fmt.Fprintln(out, "  is linked already")
	case clients.LinkCreate, clients.LinkAdd, clients.LinkUpdate:
		if ch.Kind == clients.LinkCreate {
			fmt.Fprintln(out, "  a new file")
		}
		fmt.Fprintf(out, "@@ line %d @@\n", ch.Line)
		if ch.Was != "" {
			fmt.Fprintf(out, "- %s: %s\n", ch.Name, cleanLine(ch.Was))
		}
		a.showEntry(ch)
		for _, m := range ch.Moves {
			fmt.Fprintf(out, "- %s   moves into usher\n", cleanLine(m))
		}
	case clients.LinkRestore:
		fmt.Fprintln(out, "  becomes what it was before, byte for byte")
		for _, m := range ch.Moves {
			fmt.Fprintf(out, "+ %s   is its own again\n", cleanLine(m))
		}
	case clients.LinkDelete:
		fmt.Fprintln(out, "  is deleted: link had made it")
	case clients.LinkRemove:
		fmt.Fprintf(out, "  has changed since: only the entry %s is taken out\n@@ line %d @@\n- %[1]s\n", ch.Name, ch.Line)
		for _, m := range ch.Moves {
			fmt.Fprintf(out, "+ %s   is its own again\n", cleanLine(m))
		}
	case clients.LinkForget:
		fmt.Fprintln(out, "  the entry is gone already")
	}
	for _, n := range ch.Notes {
		a.note("  %s", cleanLine(n))
	}
}

// showEntry prints our entry. JSON is indented as it is in the file, which is too
// much here.
func (a *factory) showEntry(ch *clients.Change) {
	lines := strings.Split(strings.ReplaceAll(ch.Entry, "\r\n", "\n"), "\n")
	margin := ""
	if strings.HasPrefix(ch.Entry, "{") {
		last := lines[len(lines)-1]
		margin = last[:len(last)-len(strings.TrimLeft(last, " \t"))]
		lines[0] = fmt.Sprintf("%q: %s", ch.Name, lines[0])
	}
	for _, line := range lines {
		fmt.Fprintf(a.io.Out, "+ %s\n", clean(strings.TrimPrefix(line, margin)))
	}
}

// applyLinks writes what was shown, and says so.
func (a *factory) applyLinks(w *linking) error {
	done, failed := w.apply()
	if w.imports != nil && len(w.imports.Add) > 0 && len(failed) == 0 {
		a.note("imported %s into %s", count(len(w.imports.Add), "server"), clean(a.short(w.imports.Target.File)))
	}
	a.linksSaid(w, done)
	return a.reportEach(append(w.failed, failed...))
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
func (a *factory) reportEach(failed []error) error {
	for _, err := range failed {
		a.report(err)
	}
	if len(failed) > 0 {
		return &silent{exitError}
	}
	return nil
}

// linksSaid tells what was done and what comes next.
func (a *factory) linksSaid(w *linking, done []string) {
	if len(done) == 0 {
		return
	}
	names := strings.Join(done, ", ")
	if w.undo {
		a.note("unlinked %s; restart what is running", names)
		return
	}
	a.note("linked %s; restart what is running", names)
	if !w.step {
		a.note("next: usher status; undo it with usher unlink")
	}
}
