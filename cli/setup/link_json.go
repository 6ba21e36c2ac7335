package setup

import (
	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config/clients"
)

// The shapes of usher link --json and usher unlink --json.
type (
	linkListJSON struct {
		Clients []clientJSON `json:"clients"`
	}
	clientJSON struct {
		Client  string       `json:"client"`
		Title   string       `json:"title"`
		File    string       `json:"file"`
		Found   bool         `json:"found"`
		State   string       `json:"state"`
		Servers int          `json:"servers"`
		Linked  []linkedJSON `json:"linked"`
		Problem string       `json:"problem,omitempty"`
	}
	linkedJSON struct {
		File    string `json:"file"`
		Name    string `json:"name"`
		Command string `json:"command,omitempty"`
		URL     string `json:"url,omitempty"`
	}
	linkJSON struct {
		Written  bool         `json:"written"`
		Imported []string     `json:"imported"`
		Changes  []changeJSON `json:"changes"`
		Failed   []failedJSON `json:"failed"`
	}
	failedJSON struct {
		Message string `json:"message"`
		Hint    string `json:"hint,omitempty"`
	}
	changeJSON struct {
		Client string   `json:"client"`
		Title  string   `json:"title"`
		File   string   `json:"file"`
		Name   string   `json:"name"`
		Kind   string   `json:"kind"`
		Line   int      `json:"line,omitempty"`
		Entry  string   `json:"entry,omitempty"`
		Moves  []string `json:"moves,omitempty"`
		Notes  []string `json:"notes,omitempty"`
		Backup string   `json:"backup,omitempty"`
	}
)

func clientsJSON(survey []clients.Presence, program string) linkListJSON {
	out := linkListJSON{Clients: []clientJSON{}}
	for _, p := range survey {
		c := clientJSON{
			Client: p.Client, Title: p.Title, File: p.File, Found: p.Found, State: linkState(p, program),
			Servers: p.Servers, Linked: []linkedJSON{},
		}
		if p.Err != nil {
			c.Problem = p.Err.Error()
		}
		for _, at := range p.Linked {
			s := at.Server.Masked()
			c.Linked = append(c.Linked, linkedJSON{at.File, at.Name, s.Command, s.URL})
		}
		out.Clients = append(out.Clients, c)
	}
	return out
}

// linkQuietly writes if it was told to, and prints JSON.
func linkQuietly(f *cmdutil.Factory, w *linking, write bool) error {
	failed := w.failed
	if write {
		_, more := w.apply()
		failed = append(failed, more...)
	}
	return printOutcome(f, w.json(write, failed), failed)
}

// json is what would be done, or was.
func (w *linking) json(written bool, failed []error) linkJSON {
	out := linkJSON{Written: written && w.writes(), Imported: []string{}, Changes: []changeJSON{}, Failed: []failedJSON{}}
	if w.imports != nil {
		for _, n := range w.imports.Add {
			out.Imported = append(out.Imported, n.Server.Name)
		}
	}
	for _, ch := range w.changes {
		out.Changes = append(out.Changes, changeJSON{
			Client: ch.Client, Title: ch.Title, File: ch.File, Name: ch.Name, Kind: ch.Kind, Line: ch.Line, Entry: ch.Entry,
			Moves: ch.Moves, Notes: ch.Notes, Backup: ch.Backup(),
		})
	}
	for _, e := range failed {
		out.Failed = append(out.Failed, failedJSON{e.Error(), cmdutil.HintOf(e)})
	}
	return out
}
