package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/internal/limit"
)

func TestParseCard(t *testing.T) {
	tests := []struct {
		name, text string
		want       Card
	}{
		{"SEP-2127", `{"$schema": "x", "name": "com.example/notes", "title": "Notes", "version": "1.2.0", "description": "Keeps notes",
			"websiteUrl": "https://example.com", "repository": {"url": "https://x"}, "icons": [],
			"remotes": [{"type": "streamable-http", "url": "https://example.com/mcp", "supportedProtocolVersions": ["2026-07-28"]}], "_meta": {"a": 1}}`, Card{
			Name: "com.example/notes", Title: "Notes", Version: "1.2.0", Description: "Keeps notes", WebsiteURL: "https://example.com",
			Remotes: []CardRemote{{"streamable-http", "https://example.com/mcp", []string{"2026-07-28"}}},
		}},
		{"SEP-1649", `{"version": "1.0", "protocolVersion": "2025-06-18", "serverInfo": {"name": "notes", "title": "Notes", "version": "3"},
			"description": "Keeps notes", "documentationUrl": "https://example.com/docs", "transport": {"type": "streamable-http", "endpoint": "/mcp"},
			"capabilities": {"tools": {}}, "tools": ["dynamic", {"name": "add", "description": "Adds", "inputSchema": {"type": "object"}}, {"name": "add"}, {"name": 3}]}`, Card{
			Name: "notes", Title: "Notes", Version: "3", Description: "Keeps notes", WebsiteURL: "https://example.com/docs",
			Remotes: []CardRemote{{"streamable-http", "/mcp", []string{"2025-06-18"}}},
			Tools:   []CardTool{{Name: "add", Description: "Adds", InputSchema: []byte(`{"type": "object"}`)}}, Dynamic: true, Left: 2,
		}},
		{"the word alone", `{"name": "x", "tools": "dynamic"}`, Card{Name: "x", Dynamic: true}},
		{"no tools", `{"name": "x", "tools": null}`, Card{Name: "x"}},
	}
	for _, tt := range tests {
		got, err := ParseCard([]byte(tt.text))
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, diff)
		}
	}
	for _, text := range []string{``, `[]`, `{}`, `"x"`, `{"name": 3}`, `{"name": "x"`, `{"name": "x"}` + strings.Repeat(" ", limit.CardBytes)} {
		if c, err := ParseCard([]byte(text)); err == nil {
			t.Errorf("%.20q is a card: %+v", text, c)
		}
	}
}

// TestCardLists: a card cannot announce any number of tools and addresses.
func TestCardLists(t *testing.T) {
	var tools, remotes []string
	for i := range limit.CardTools + 5 {
		tools = append(tools, fmt.Sprintf(`{"name": "t%d"}`, i))
	}
	for range limit.CardRemotes + 1 {
		remotes = append(remotes, `{"type": "sse", "url": "https://x.example"}`)
	}
	c, err := ParseCard([]byte(`{"name": "x", "tools": [` + strings.Join(tools, ",") + `], "remotes": [` + strings.Join(remotes, ",") + `]}`))
	if err != nil || len(c.Tools) != limit.CardTools || c.Left != 5 || len(c.Remotes) != limit.CardRemotes {
		t.Errorf("%v: %d tools, %d left out, %d remotes", err, len(c.Tools), c.Left, len(c.Remotes))
	}
}
