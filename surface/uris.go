package surface

import (
	"net/url"
	"strings"
)

// uriPrefix begins the addresses of resources that have to name their server.
const uriPrefix = "usher://"

// withServer is the address of a resource, or template, with its server. The
// original follows as it stands, so that a template can still be filled in.
func withServer(label, uri string) string {
	return uriPrefix + url.PathEscape(label) + "/" + uri
}

// splitServer takes such an address apart.
func splitServer(uri string) (label, rest string, ok bool) {
	after, ok := strings.CutPrefix(uri, uriPrefix)
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
type template struct {
	parts   []string // the text between expressions
	literal int      // length of that text: more of it, more specific
}

// parseTemplate reads the literal parts. What an expression stands for is the
// server's business, so anything fits it.
func parseTemplate(text string) template {
	t := template{}
	for {
		before, after, found := strings.Cut(text, "{")
		t.parts = append(t.parts, before)
		t.literal += len(before)
		if !found {
			return t
		}
		if _, text, found = strings.Cut(after, "}"); !found {
			t.parts = append(t.parts, "") // an expression without an end
			return t
		}
	}
}

func (t template) matches(uri string) bool {
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
