package setup

import (
	"encoding/json"

	"github.com/usher-mcp/usher/config/clients"
)

// The shape of usher import --json.
type (
	importedJSON struct {
		File    string        `json:"file"`
		Written bool          `json:"written"`
		Servers []plannedJSON `json:"servers"`
		Skipped []skippedJSON `json:"skipped"`
	}
	plannedJSON struct {
		Name       string          `json:"name"`
		Title      string          `json:"title,omitempty"`
		From       []string        `json:"from"`
		Notes      []string        `json:"notes,omitempty"`
		Definition json.RawMessage `json:"definition"`
	}
	skippedJSON struct {
		Name   string `json:"name,omitempty"`
		From   string `json:"from"`
		Reason string `json:"reason"`
	}
)

// importJSON shows a plan without credentials.
func importJSON(plan *clients.Plan, written bool) importedJSON {
	out := importedJSON{
		File: plan.Target.File, Written: written,
		Servers: []plannedJSON{}, Skipped: []skippedJSON{},
	}
	for _, n := range plan.Add {
		entry, err := n.Server.Masked().Entry()
		if err != nil {
			entry = json.RawMessage("null")
		}
		out.Servers = append(out.Servers, plannedJSON{n.Server.Name, n.Server.Title, n.From, n.Notes, entry})
	}
	for _, s := range plan.Skipped {
		out.Skipped = append(out.Skipped, skippedJSON{s.Name, s.From, s.Reason})
	}
	return out
}
