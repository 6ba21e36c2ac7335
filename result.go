package usher

import (
	"encoding/json"
	"errors"
	"strings"
)

// Result is the result of a tool, decoded for use in a program. To pass a result on, use
// the raw bytes: they have everything that the server sent.
type Result struct {
	Content []Content `json:"content"`
	// StructuredContent is the raw JSON value of that name; nil when there is none.
	StructuredContent json.RawMessage `json:"structuredContent"`
	// IsError: the tool failed, and Content says why.
	IsError bool `json:"isError"`
}

// Content is one part of a [Result].
type Content struct {
	Type     string `json:"type"` // text, image, audio, resource, resource_link or a later one
	Text     string `json:"text"`
	MIMEType string `json:"mimeType"`
	Data     []byte `json:"data"` // image and audio, decoded
	URI      string `json:"uri"`  // of a resource_link
	// Resource is the embedded resource as raw JSON.
	Resource json.RawMessage `json:"resource"`
}

// ParseResult decodes what [Host.Call] returned.
func ParseResult(raw []byte) (Result, error) {
	var r Result
	if err := json.Unmarshal(raw, &r); err != nil {
		return Result{}, errors.Join(errors.New("not the result of a tool"), err)
	}
	return r, nil
}

// Text returns the text parts, one below the other.
func (r Result) Text() string {
	var parts []string
	for _, c := range r.Content {
		if c.Type == "text" {
			parts = append(parts, c.Text)
		}
	}
	return strings.Join(parts, "\n")
}
