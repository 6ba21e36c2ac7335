package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/usher-mcp/usher/internal/limit"
)

// Card is a server card: what a server says about itself before the first connection.
// Both forms of the proposal are read, the one with the fields at the top (SEP-2127) and
// the older one with serverInfo and tools (SEP-1649). All of it is only what its author
// announces.
type Card struct {
	Name        string
	Title       string
	Version     string
	Description string
	WebsiteURL  string
	Remotes     []CardRemote
	Tools       []CardTool
	// Dynamic says that the card leaves its tools to the server.
	Dynamic bool
	// Left is how many further tools were left out: too many, or without a usable name.
	Left int
}

// CardRemote is one address at which the server says it can be reached.
type CardRemote struct {
	Type             string   `json:"type"`
	URL              string   `json:"url"`
	ProtocolVersions []string `json:"supportedProtocolVersions"`
}

// CardTool is one tool that a card announces.
type CardTool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// cardFile is a card of either form.
type cardFile struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Version     string          `json:"version"`
	Description string          `json:"description"`
	WebsiteURL  string          `json:"websiteUrl"`
	Remotes     []CardRemote    `json:"remotes"`
	Tools       json.RawMessage `json:"tools"`

	ServerInfo struct {
		Name    string `json:"name"`
		Title   string `json:"title"`
		Version string `json:"version"`
	} `json:"serverInfo"`
	DocumentationURL string `json:"documentationUrl"`
	ProtocolVersion  string `json:"protocolVersion"`
	Transport        struct {
		Type     string `json:"type"`
		Endpoint string `json:"endpoint"`
		URL      string `json:"url"`
	} `json:"transport"`
}

// ParseCard reads a card of at most [limit.CardBytes].
func ParseCard(text []byte) (Card, error) {
	if len(text) > limit.CardBytes {
		return Card{}, fmt.Errorf("the server card is larger than %d bytes", limit.CardBytes)
	}
	var f cardFile
	if err := json.Unmarshal(text, &f); err != nil {
		return Card{}, fmt.Errorf("this is not a server card: %w", err)
	}
	c := Card{
		Name: cmp.Or(f.Name, f.ServerInfo.Name), Title: cmp.Or(f.Title, f.ServerInfo.Title), Version: cmp.Or(f.ServerInfo.Version, f.Version),
		Description: f.Description, WebsiteURL: cmp.Or(f.WebsiteURL, f.DocumentationURL), Remotes: f.Remotes,
	}
	if at := cmp.Or(f.Transport.URL, f.Transport.Endpoint); at != "" && len(c.Remotes) == 0 {
		r := CardRemote{Type: f.Transport.Type, URL: at}
		if f.ProtocolVersion != "" {
			r.ProtocolVersions = []string{f.ProtocolVersion}
		}
		c.Remotes = []CardRemote{r}
	}
	if c.Name == "" {
		return Card{}, errors.New("this is not a server card: it has no name")
	}
	c.Remotes = c.Remotes[:min(len(c.Remotes), limit.CardRemotes)]
	c.readTools(f.Tools)
	return c, nil
}

// readTools reads "tools": an array of definitions, or the word "dynamic", alone or in
// the array.
func (c *Card) readTools(raw json.RawMessage) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		c.Dynamic = string(raw) == `"dynamic"`
		return
	}
	seen := map[string]bool{}
	for i, item := range list {
		if len(c.Tools) == limit.CardTools {
			c.Left += len(list) - i
			return
		}
		var t CardTool
		switch err := json.Unmarshal(item, &t); {
		case string(item) == `"dynamic"`:
			c.Dynamic = true
		case err != nil || t.Name == "" || len(t.Name) > limit.NameSize || seen[t.Name]:
			c.Left++
		default:
			seen[t.Name] = true
			c.Tools = append(c.Tools, t)
		}
	}
}
