package server

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
)

// The shape of usher list --json.
type (
	listedJSON struct {
		Servers  []serverJSON `json:"servers"`
		Files    []fileJSON   `json:"files"`
		Problems []placeJSON  `json:"problems,omitempty"` // of settings
		Warnings []placeJSON  `json:"warnings,omitempty"`
	}
	serverJSON struct {
		Name       string          `json:"name"`
		Title      string          `json:"title,omitempty"`
		Transport  string          `json:"transport,omitempty"`
		State      string          `json:"state"`
		Reason     string          `json:"reason,omitempty"`
		Origin     originJSON      `json:"origin"`
		Problems   []placeJSON     `json:"problems,omitempty"`
		Definition json.RawMessage `json:"definition"`
	}
	originJSON struct {
		File    string `json:"file"`
		Line    int    `json:"line"`
		Column  int    `json:"column"`
		Layer   string `json:"layer"`
		Shadows string `json:"shadows,omitempty"`
	}
	fileJSON struct {
		Path     string      `json:"path"`
		Layer    string      `json:"layer"`
		Servers  int         `json:"servers"`
		Problems []placeJSON `json:"problems,omitempty"`
	}
	placeJSON struct {
		File    string `json:"file,omitempty"`
		Line    int    `json:"line,omitempty"`
		Column  int    `json:"column,omitempty"`
		Message string `json:"message"`
		Hint    string `json:"hint,omitempty"`
	}
)

func listJSON(f *cmdutil.Factory, cfg *config.Config, rows []cmdutil.ServerState) error {
	out := listedJSON{Servers: []serverJSON{}, Files: []fileJSON{}}
	for _, r := range rows {
		s := r.Server
		entry, err := s.Entry()
		if err != nil {
			return fmt.Errorf("write %s as JSON: %w", s.Name, err)
		}
		out.Servers = append(out.Servers, serverJSON{
			Name: s.Name, Title: s.Title, Transport: string(s.Transport), State: r.State, Reason: r.Reason,
			Origin:   originJSON{s.Origin.File, s.Origin.Line, s.Origin.Column, string(s.Origin.Layer), s.Origin.Shadows},
			Problems: placesOf(r.Err), Definition: entry,
		})
	}
	fileErrors := map[string]bool{}
	for _, file := range cfg.Files {
		problems := placesOf(file.Err)
		for _, p := range cmdutil.Flatten(file.Err) {
			fileErrors[p.Error()] = true
		}
		out.Files = append(out.Files, fileJSON{file.Path, string(file.Layer), file.Servers, problems})
	}
	for _, err := range cmdutil.Flatten(cfg.Usher.Problem) {
		if !fileErrors[err.Error()] {
			out.Problems = append(out.Problems, placesOf(err)...)
		}
	}
	for _, w := range cfg.Warnings {
		out.Warnings = append(out.Warnings, placeJSON{w.File, w.Line, w.Column, w.Msg, ""})
	}
	return f.PrintJSON(out)
}

func placesOf(err error) []placeJSON {
	var out []placeJSON
	for _, e := range cmdutil.Flatten(err) {
		var place *config.Error
		if errors.As(e, &place) {
			out = append(out, placeJSON{place.File, place.Line, place.Column, place.Msg, place.Hint})
			continue
		}
		out = append(out, placeJSON{Message: e.Error(), Hint: cmdutil.HintOf(e)})
	}
	return out
}
