package clients

import (
	"crypto/sha256"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/template"
)

// identity says which server a definition means, regardless of its author: the
// canonical address, or the command line without versions.
func identity(s config.Server) string {
	if s.URL == "" {
		name, rest := program(s.Command, s.Args)
		words := []string{name}
		for _, w := range template.MaskArgs(rest) {
			words = append(words, withoutVersion(w))
		}
		return "run " + strings.Join(words, "\x00")
	}
	shown := s.Masked().URL
	u, err := url.Parse(shown)
	if err != nil || strings.Contains(shown, "${") {
		return "url " + shown
	}
	out := "url " + strings.ToLower(u.Scheme) + "://" + strings.ToLower(u.Host) + strings.TrimSuffix(u.EscapedPath(), "/")
	if u.RawQuery != "" && !strings.Contains(u.RawQuery, template.Mask) {
		out += "?" + u.Query().Encode()
	}
	return out
}

// credentials is a hash of everything that could make two definitions of one
// server two accounts.
func credentials(s config.Server) string {
	var out []string
	dict := func(kind string, m map[string]string, lower bool) {
		for _, k := range sortedKeys(m) {
			name := k
			if lower {
				name = strings.ToLower(k)
			}
			out = append(out, kind, name, m[k])
		}
	}
	dict("env", s.Env, false)
	dict("header", s.Headers, true)
	out = append(out, s.HeadersFrom)
	if s.URL != "" && s.Masked().URL != s.URL {
		out = append(out, s.URL)
	}
	if masked := template.MaskArgs(s.Args); !slices.Equal(masked, s.Args) {
		out = append(out, s.Args...)
	}
	if o := s.OAuth; o != nil {
		out = append(out, o.ClientID, o.ClientSecret, o.Issuer, o.Audience, fmt.Sprint(o.Scopes))
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(out, "\x00"))))
}
