package config

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/usher-mcp/usher/config/template"
	"github.com/usher-mcp/usher/internal/address"
	"github.com/usher-mcp/usher/internal/visible"
)

// NeedsApproval reports whether a person has to approve this very definition,
// known by its Digest, before it is used.
func (s Server) NeedsApproval() bool { return len(s.ApprovalReasons()) > 0 }

// ApprovalReasons says why the definition is held back; none means it is not.
// Only project files are held back: somebody else wrote them. A plain https
// address on the public internet is harmless, as far as [Server.PublicOnly] is
// respected. Everything else waits for a person: other addresses, headers and
// login settings, which are requests of the author's choice inside the user's
// network; what would carry away the user's environment, files or secrets,
// take the place of one of the user's own servers, or loosen a safeguard.
func (s Server) ApprovalReasons() []string {
	if s.Origin.Layer != LayerProject {
		return nil
	}
	var out []string
	add := func(when bool, format string, args ...any) {
		if when {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	add(s.Command != "", "starts a program on this machine")
	add(s.Origin.Shadows != "", "takes the place of the server at %s", s.Origin.Shadows)
	add(s.Command == "" && !plainPublic(s.URL), "is not a plain https address on the public internet")
	add(len(s.Headers) > 0 || s.HeadersFrom != "", "sends headers of its choice")
	add(s.OAuth.isSet(), "sets how to log in")
	for _, kind := range s.placeholderKinds() {
		add(true, "%s", map[string]string{
			template.Env:     "reads environment variables",
			template.File:    "reads files",
			template.Secret:  "reads stored secrets",
			template.Input:   "reads answers to inputs",
			template.Command: "runs commands to get values",
		}[kind])
	}
	add(s.Card != "", "reads a server card")
	add(s.Trust, "asks that its own annotations be believed")
	add(s.Pins == PinsOff || s.Pins == PinsWarn, "asks that changed tools be let through")
	add(s.MaxMessageBytes > DefaultMaxMessageBytes, "raises the limit on the size of a message")
	add(s.Supervision.Retry == RetryAlways, "asks that calls be repeated even if they may have run")
	add(s.OAuth != nil && len(s.OAuth.Discovery.Allow) > 0, "asks for logins to reach private addresses")
	return out
}

// PublicOnly reports whether connections for this server, and for logins to it, must
// go to public addresses only: unless a person has approved the definition of a
// project file, its host name may resolve to nothing else.
func (s Server) PublicOnly() bool { return s.Origin.Layer == LayerProject }

// plainPublic reports whether an address, as it is written, is https at the default
// port of a host that may be public. What its name resolves to is not known here.
func plainPublic(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && u.Scheme == "https" && u.User == nil && (u.Port() == "" || u.Port() == "443") &&
		u.Host != "" && !address.LocalName(u.Hostname())
}

// isSet reports whether anything is configured about logging in.
func (o *OAuth) isSet() bool {
	if o == nil {
		return false
	}
	c := *o
	if c.Discovery.Mode == "auto" {
		c.Discovery.Mode = ""
	}
	return !reflect.ValueOf(c).IsZero()
}

// placeholderKinds lists the kinds in use, in a fixed order.
func (s Server) placeholderKinds() []string {
	used := map[string]bool{}
	c := s.clone()
	_ = c.walk(func(_ field, v string) (string, error) { // never fails
		refs, _ := template.Placeholders(v) // a broken template is a Problem already
		for _, ref := range refs {
			used[ref.Kind] = true
		}
		return v, nil
	})
	return slices.Sorted(maps.Keys(used))
}

// Digest identifies a definition for approval. It covers every field that has
// to do with what runs, where data goes and what safeguards hold, placeholders
// as they are written, and the path of the file; not how long things wait.
func (s Server) Digest() string { return s.DigestWith() }

// DigestWith is Digest with further facts mixed in, such as the absolute path
// that a command was found at, or the hash of that file.
func (s Server) DigestWith(facts ...string) string {
	d := digester{sha256.New()}
	d.add("usher server v1", s.Origin.File, s.Name, string(s.Transport))
	c := s.clone()
	_ = c.walk(func(f field, v string) (string, error) { // never fails
		d.add(f.path, v)
		return v, nil
	})
	// walk skips empty strings and says nothing of how many there are.
	d.add("sizes", fmt.Sprint(len(s.Args), len(s.Env), len(s.Headers)))
	d.add("options", s.Pins, string(s.Supervision.Retry), fmt.Sprint(s.Trust, s.Singleton, s.MaxMessageBytes))
	d.add("tools.allow", s.Tools.Allow...)
	d.add("tools.deny", s.Tools.Deny...)
	for _, k := range slices.Sorted(maps.Keys(s.Tools.Rename)) {
		d.add("tools.rename", k, s.Tools.Rename[k])
	}
	if o := s.OAuth; o != nil {
		d.add("oauth", o.Grant, o.Discovery.Mode, fmt.Sprint(o.DPoP, o.IDP != nil, len(o.Scopes), len(o.Discovery.Allow), len(o.AuthorizeParams)))
	}
	d.add("facts", facts...)
	return "sha256:" + hex.EncodeToString(d.Sum(nil))
}

// digester hashes strings with their lengths, so that no two lists of fields
// can run together into the same bytes.
type digester struct{ hash.Hash }

func (d digester) add(name string, values ...string) {
	var n [8]byte
	put := func(s string) {
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		d.Write(n[:])
		d.Write([]byte(s))
	}
	put(name)
	binary.BigEndian.PutUint64(n[:], uint64(len(values)))
	d.Write(n[:])
	for _, v := range values {
		put(v)
	}
}

// Describe shows the whole definition for a person to approve, one field a
// line, nothing shortened or masked, and every character that could deceive
// the eye written as an escape.
func (s Server) Describe() []string {
	var out []string
	line := func(name, value string) {
		text := fmt.Sprintf("%-12s %s", fieldName(name), visible.Quote(value))
		if hasNonASCII(value) {
			text += "  (not only ASCII: look closely)"
		}
		out = append(out, text)
	}
	line("server", s.Name)
	if s.Title != "" {
		line("title", s.Title)
	}
	line("file", fmt.Sprintf("%s:%d", s.Origin.File, s.Origin.Line))
	line("transport", string(s.Transport))
	c := s.clone()
	_ = c.walk(func(f field, v string) (string, error) { // never fails
		line(f.path, v)
		return v, nil
	})
	s.describeOptions(line)
	for _, r := range s.ApprovalReasons() {
		out = append(out, fmt.Sprintf("%-12s %s", "held back", visible.Text(r)))
	}
	return out
}

// fieldName quotes a path in which a key could pass for something else.
func fieldName(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool { return !tokenRune(r) && r != '[' && r != ']' }) {
		return visible.Quote(path)
	}
	return path
}

func (s Server) describeOptions(line func(name, value string)) {
	flag := func(set bool, name, value string) {
		if set {
			line(name, value)
		}
	}
	flag(s.Trust, "trust", "true")
	flag(s.Pins != "" && s.Pins != PinsBlock, "pins", s.Pins)
	flag(s.Supervision.Retry == RetryAlways, "retry", string(s.Supervision.Retry))
	flag(s.Singleton, "singleton", "true")
	flag(s.MaxMessageBytes != 0 && s.MaxMessageBytes != DefaultMaxMessageBytes, "maxMessageBytes", fmt.Sprint(s.MaxMessageBytes))
	for _, p := range s.Tools.Allow {
		line("tools.allow", p)
	}
	for _, p := range s.Tools.Deny {
		line("tools.deny", p)
	}
	for _, k := range slices.Sorted(maps.Keys(s.Tools.Rename)) {
		line("tools.rename", k+" -> "+s.Tools.Rename[k])
	}
	if o := s.OAuth; o != nil {
		flag(o.Grant != "", "oauth.grant", o.Grant)
		flag(o.DPoP, "oauth.dpop", "true")
		flag(o.Discovery.Mode != "" && o.Discovery.Mode != "auto", "oauth.discovery", o.Discovery.Mode)
	}
}

func hasNonASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return true
		}
	}
	return false
}
