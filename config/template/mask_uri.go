package template

import (
	"net/url"
	"slices"
	"strings"
)

// MaskURI returns a URI that may be written to logs and the audit log: user names and
// passwords, the values of the query, the fragment and path segments that look like
// credentials are replaced by [Mask]; the keys of the query stay, so that a person can
// still tell what was read. A URI inside the path, as in usher://SERVER/URI, is masked
// too. Masking twice changes nothing more.
func MaskURI(uri string) string {
	if len(uri) > maxMaskedURI {
		return Mask
	}
	scheme, rest, found := strings.Cut(uri, ":")
	if !found {
		return maskTail(uri)
	}
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		return scheme + "://" + maskAuthority(after, maxNestedURI)
	}
	return scheme + ":" + maskTail(rest)
}

// A URI that is longer, or has more URIs inside it, is hidden as a whole.
const (
	maxMaskedURI = 8 << 10
	maxNestedURI = 4
)

// maskAuthority masks what follows "://".
func maskAuthority(rest string, nested int) string {
	if nested == 0 {
		return Mask
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority := rest[:end]
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		authority = Mask + authority[at:]
	} else {
		authority = maskSegment(authority)
	}
	tail := rest[end:]
	// usher://SERVER/https://user:password@host/…
	if head, inner, ok := strings.Cut(tail, "://"); ok && strings.HasPrefix(head, "/") && !strings.ContainsAny(head, "?#") {
		return authority + maskPath(head) + "://" + maskAuthority(inner, nested-1)
	}
	return authority + maskTail(tail)
}

// maskTail masks path, query and fragment.
func maskTail(tail string) string {
	tail, fragment, hasFragment := strings.Cut(tail, "#")
	path, query, hasQuery := strings.Cut(tail, "?")
	out := maskPath(path)
	if hasQuery {
		out += "?" + maskQuery(query)
	}
	if hasFragment && fragment != "" {
		out += "#" + Mask
	} else if hasFragment {
		out += "#"
	}
	return out
}

// maskQuery keeps the keys. What has no key may be a credential.
func maskQuery(query string) string {
	if query == "" {
		return ""
	}
	pairs := strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' })
	for i, pair := range pairs {
		key, _, found := strings.Cut(pair, "=")
		if !found || LooksSecret(key) {
			pairs[i] = Mask
			continue
		}
		pairs[i] = key + "=" + Mask
	}
	return strings.Join(pairs, "&")
}

func maskPath(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		// After /token/ and the like stands a credential, whatever it looks like.
		named := i > 0 && s != "" && IsSecretName(segments[i-1])
		if masked := maskSegment(s); named || masked != s {
			segments[i] = Mask
		}
	}
	return strings.Join(segments, "/")
}

// maskSegment hides a segment that looks like a credential, holds a whole URI, or
// parameters, as in /;token=x/.
func maskSegment(segment string) string {
	text, err := url.PathUnescape(segment)
	if err != nil {
		text = segment
	}
	parts := strings.FieldsFunc(text, func(r rune) bool { return r == ':' || r == ',' })
	if segment != Mask && (LooksSecret(text) || slices.ContainsFunc(parts, LooksSecret) || strings.ContainsAny(text, "@=") || strings.Contains(text, "://")) {
		return Mask
	}
	return segment
}
