package oauth

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/usher-mcp/usher/vault"
)

const maxPaste = 16 << 10

// Pasted is what a person pasted, taken apart.
type Pasted struct {
	Callback
	// Address is the pasted address without its query; nil when only parameters or
	// a bare code were pasted.
	Address *url.URL
}

// ParsePaste reads what a person copied after a login: the whole address the
// browser ended at, its query, `code#state`, or the bare code, with the wrapping,
// quoting and escaping that terminals and chat programs add. Errors do not repeat
// the text.
func ParsePaste(text string) (Pasted, error) {
	if len(text) > maxPaste {
		return Pasted{}, fmt.Errorf("%w: it is too long", ErrBadPaste)
	}
	word, err := oneWord(text)
	if err != nil {
		return Pasted{}, err
	}
	lower := strings.ToLower(word)
	switch {
	case strings.HasPrefix(lower, "http://") || strings.HasPrefix(lower, "https://"):
		return parsePastedURL(word)
	case strings.Contains(word, "code=") || strings.Contains(word, "error="):
		if _, query, ok := strings.Cut(word, "?"); ok {
			word = query // what is before it is an address as some browsers show it, without http://
		}
		return parsePastedQuery(word)
	case strings.Contains(word, "://"):
		return Pasted{}, fmt.Errorf("%w: it is an address of another kind", ErrBadPaste)
	case strings.ContainsAny(word, "?&"):
		return Pasted{}, fmt.Errorf("%w: it is a part of an address; paste all of it, in one line", ErrBadPaste)
	}
	code, state, _ := strings.Cut(word, "#")
	if plain, err := url.PathUnescape(code); err == nil {
		code = plain // copied out of an address
	}
	if len(code) < 4 || !headerSafe(code) || !headerSafe(state+"x") {
		return Pasted{}, fmt.Errorf("%w: it is neither an address nor a code", ErrBadPaste)
	}
	return Pasted{Callback: Callback{Code: vault.NewSecret(code), State: state}}, nil
}

// oneWord undoes wrapping and quoting.
func oneWord(text string) (string, error) {
	fields := strings.Fields(strings.ReplaceAll(text, "&amp;", "&"))
	isURL := func(s string) bool {
		return strings.HasPrefix(unquote(s), "http://") || strings.HasPrefix(unquote(s), "https://")
	}
	answers := func(s string) bool { return strings.Contains(s, "code=") || strings.Contains(s, "error=") }
	switch urls := slices.DeleteFunc(slices.Clone(fields), func(s string) bool { return !isURL(s) }); {
	case len(fields) == 0:
		return "", fmt.Errorf("%w: it is empty", ErrBadPaste)
	case len(fields) == 1:
		return unquote(fields[0]), nil
	case len(urls) == 1 && isURL(fields[0]) && len(fields) == lines(text):
		return unquote(strings.Join(fields, "")), nil // an address wrapped over lines
	default:
		found := slices.DeleteFunc(urls, func(s string) bool { return !answers(s) })
		if len(found) == 1 {
			return unquote(found[0]), nil
		}
	}
	return "", fmt.Errorf("%w: it holds several lines or words; paste only the address the browser ended at", ErrBadPaste)
}

// lines counts the lines that are not blank.
func lines(text string) (n int) {
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			n++
		}
	}
	return n
}

func unquote(s string) string { return strings.Trim(s, "\"'`<>()[],;") }

func parsePastedURL(word string) (Pasted, error) {
	u, err := url.Parse(word)
	if err != nil {
		return Pasted{}, fmt.Errorf("%w: the address cannot be read", ErrBadPaste)
	}
	p, err := parsePastedQuery(u.RawQuery)
	if err != nil {
		return Pasted{}, err
	}
	u.RawQuery, u.Fragment, u.RawFragment = "", "", ""
	p.Address = u
	return p, nil
}

func parsePastedQuery(raw string) (Pasted, error) {
	raw, _, _ = strings.Cut(raw, "#")
	q, err := url.ParseQuery(raw)
	if err != nil {
		return Pasted{}, fmt.Errorf("%w: its parameters cannot be read", ErrBadPaste)
	}
	if q.Has("response_type") || q.Has("code_challenge") {
		return Pasted{}, fmt.Errorf("%w: it is the address of the login page; log in there and paste the address you end at", ErrBadPaste)
	}
	cb, err := ReadCallback(q)
	if err != nil {
		return Pasted{}, err
	}
	if cb.Code.IsZero() && cb.Error == "" {
		return Pasted{}, fmt.Errorf("%w: it has neither a code nor an error; it must be the address you end at after logging in", ErrBadPaste)
	}
	if cb.State == "" {
		return Pasted{}, fmt.Errorf("%w: it has no state", ErrBadPaste)
	}
	return Pasted{Callback: cb}, nil
}
