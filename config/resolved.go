package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/usher-mcp/usher/internal/visible"
)

// addHeadersFrom merges the headers that HeadersFrom yielded; those written
// out in the entry win, whatever their case.
func (s *Server) addHeadersFrom() error {
	if s.HeadersFrom == "" {
		return nil
	}
	extra, err := parseHeaders(s.HeadersFrom)
	if err != nil {
		return &PlaceholderError{Server: s.Name, Field: "headersFrom", Reason: err.Error(), Hint: `print a JSON object such as {"Authorization": "Bearer …"}`, Err: err}
	}
	have := map[string]bool{}
	for k := range s.Headers {
		have[strings.ToLower(k)] = true
	}
	for k, v := range extra {
		if have[strings.ToLower(k)] {
			continue
		}
		if s.Headers == nil {
			s.Headers = map[string]string{}
		}
		s.Headers[k] = v
	}
	s.HeadersFrom = ""
	return nil
}

// parseHeaders reads a JSON object of strings or "Name: value" lines. Its
// errors never quote the text, which is likely to hold a credential.
func parseHeaders(text string) (map[string]string, error) {
	text = strings.TrimSpace(text)
	out := map[string]string{}
	if strings.HasPrefix(text, "{") {
		if json.Unmarshal([]byte(text), &out) != nil {
			return nil, errors.New("the value is not a JSON object of strings")
		}
		return out, nil
	}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, fmt.Errorf("line %d of the value is not a header", i+1)
		}
		out[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return out, nil
}

// checkResolved repeats the checks that placeholders had put off: a value
// must not break out of its place. It names fields, never values.
func (s *Server) checkResolved() error {
	fail := func(field, reason string) error {
		return &PlaceholderError{Server: s.Name, Field: field, Reason: reason}
	}
	if s.Transport == TransportStdio {
		if strings.TrimSpace(s.Command) == "" {
			return fail("command", "is empty")
		}
	} else if err := checkURL(s.URL); err != nil {
		return fail("url", err.Error())
	}
	for k, v := range s.Headers {
		if err := checkHeader(k, v); err != nil {
			return fail("headers."+k, err.Error())
		}
	}
	return s.walk(func(f field, v string) (string, error) {
		if strings.ContainsRune(v, 0) {
			return "", fail(f.path, "holds a NUL character")
		}
		return v, nil
	})
}

// checkURL takes only absolute http and https addresses with a host. Its
// errors do not quote the address, which may carry a credential.
func checkURL(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return errors.New("is not an address")
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("must start with http:// or https://, not %s", visible.Quote(u.Scheme+":"))
	case u.Hostname() == "":
		return errors.New("names no host")
	case strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return errors.New("holds a blank or a control character")
	}
	return nil
}

func checkHeader(name, value string) error {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !tokenRune(r) }) {
		return fmt.Errorf("%s is not a header name", visible.Quote(name))
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return errors.New("holds a control character; a header value is one line")
	}
	return nil
}

// tokenRune reports the characters of a token in RFC 9110, section 5.6.2.
func tokenRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
		r < 0x80 && strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}
