package naming

import (
	"net/url"
	"strings"
)

// uriPrefix begins the addresses of resources that have to name their server.
const UriPrefix = "usher://"

// withServer is the address of a resource, or template, with its server. The
// original follows as it stands, so that a template can still be filled in.
func WithServer(label, uri string) string {
	return UriPrefix + url.PathEscape(label) + "/" + uri
}

// splitServer takes such an address apart.
func SplitServer(uri string) (label, rest string, ok bool) {
	after, ok := strings.CutPrefix(uri, UriPrefix)
	if !ok {
		return "", "", false
	}
	part, rest, ok := strings.Cut(after, "/")
	if !ok {
		return "", "", false
	}
	label, err := url.PathUnescape(part)
	return label, rest, err == nil
}

// template tells which addresses a URI template can have made.
type Template struct {
	parts   []string // the text between expressions
	Literal int      // length of that text: more of it, more specific
}

// parseTemplate reads the literal parts. What an expression stands for is the
// server's business, so anything fits it.
func ParseTemplate(text string) Template {
	t := Template{}
	for {
		before, after, found := strings.Cut(text, "{")
		t.parts = append(t.parts, before)
		t.Literal += len(before)
		if !found {
			return t
		}
		if _, text, found = strings.Cut(after, "}"); !found {
			t.parts = append(t.parts, "") // an expression without an end
			return t
		}
	}
}

// Matches reports whether the template can have made uri.
func (t Template) Matches(uri string) bool {
	last := len(t.parts) - 1
	if last == 0 {
		return uri == t.parts[0]
	}
	if !strings.HasPrefix(uri, t.parts[0]) {
		return false
	}
	uri = uri[len(t.parts[0]):]
	for _, p := range t.parts[1:last] {
		_, after, found := strings.Cut(uri, p)
		if !found {
			return false
		}
		uri = after
	}
	return strings.HasSuffix(uri, t.parts[last])
}
