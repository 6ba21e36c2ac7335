package clients

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/clients/syntax"
	"github.com/usher-mcp/usher/config/template"
)

// entry is one server of a foreign file while it is being read. Keys that a
// reader has looked at count as used; the others end up in Foreign.
type entry struct {
	*reading
	name  string
	keys  map[string]any
	used  map[string]bool
	s     config.Server
	notes []string
	skip  string // why it is not imported
}

func (e *entry) note(format string, args ...any) {
	e.notes = append(e.notes, fmt.Sprintf(format, args...))
}

// get returns the first of several keys that is there and not null.
func (e *entry) get(keys ...string) (any, bool) {
	for _, k := range keys {
		if v, ok := e.keys[k]; ok {
			e.used[k] = true
			if v != nil {
				return v, true
			}
		}
	}
	return nil, false
}

// keep takes a key back: it was looked at, but has no place with us.
func (e *entry) keep(key string) { delete(e.used, key) }

// plain returns a string as it is written.
func (e *entry) plain(keys ...string) string {
	v, ok := e.get(keys...)
	if !ok {
		return ""
	}
	s, _ := syntax.Text(v)
	return s
}

// str returns a string in our dialect.
func (e *entry) str(keys ...string) string { return e.convert(e.plain(keys...)) }

// convert puts a text of the client into our dialect.
func (r *reading) convert(s string) string { return r.client.dialect(r, s) }

func (e *entry) strs(keys ...string) []string {
	v, _ := e.get(keys...)
	return e.convertAll(v)
}

func (r *reading) convertAll(v any) []string {
	var out []string
	for _, s := range texts(v) {
		out = append(out, r.convert(s))
	}
	return out
}

// texts returns a list of scalars, or one string as its words.
func texts(v any) []string {
	if s, ok := v.(string); ok {
		return strings.Fields(s)
	}
	list, _ := v.([]any)
	var out []string
	for _, e := range list {
		if s, ok := syntax.Text(e); ok {
			out = append(out, s)
		}
	}
	return out
}

// dict returns an object of strings in our dialect; null members are left out.
func (e *entry) dict(keys ...string) map[string]string {
	v, _ := e.get(keys...)
	return e.convertDict(v)
}

func (r *reading) convertDict(v any) map[string]string {
	m, _ := v.(map[string]any)
	var out map[string]string
	for k, v := range m {
		s, ok := syntax.Text(v)
		if !ok {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[k] = r.convert(s)
	}
	return out
}

func (e *entry) object(key string) (map[string]any, bool) {
	v, ok := e.get(key)
	m, isMap := v.(map[string]any)
	return m, ok && isMap
}

func (e *entry) boolean(key string) (value, ok bool) {
	v, _ := e.get(key)
	value, ok = v.(bool)
	return value, ok
}

// duration reads a number in a unit; nonsense is left to Foreign.
func (e *entry) duration(key string, unit time.Duration, p *time.Duration) {
	v, ok := e.get(key)
	if !ok {
		return
	}
	n, isNumber := numeric(v)
	if d := time.Duration(n * float64(unit)); isNumber && n > 0 && d > 0 && n < 1e9 {
		*p = d
		return
	}
	e.keep(key)
}

func numeric(v any) (float64, bool) {
	switch t := v.(type) {
	case json.Number:
		f, err := t.Float64()
		return f, err == nil
	case float64:
		return t, true
	case int64:
		return float64(t), true
	case uint64:
		return float64(t), true
	case int:
		return float64(t), true
	case string:
		f, err := strconv.ParseFloat(t, 64)
		return f, err == nil
	}
	return 0, false
}

func (e *entry) setEnv(name, value string) {
	if e.s.Env == nil {
		e.s.Env = map[string]string{}
	}
	e.s.Env[name] = value
}

func (e *entry) setHeader(name, value string) {
	if e.s.Headers == nil {
		e.s.Headers = map[string]string{}
	}
	e.s.Headers[name] = value
}

func (e *entry) oauth() *config.OAuth {
	if e.s.OAuth == nil {
		e.s.OAuth = &config.OAuth{}
	}
	return e.s.OAuth
}

// headersFrom turns a helper that prints headers into a command placeholder.
func (e *entry) headersFrom(key string) {
	line := e.plain(key)
	if line == "" {
		return
	}
	placeholder := "${cmd:" + line + "}"
	if refs, err := template.Placeholders(placeholder); err != nil || len(refs) != 1 || refs[0].Name != line {
		e.keep(key)
		e.note("%s cannot be written as ${cmd:…}; set headersFrom by hand", key)
		return
	}
	e.s.HeadersFrom = placeholder
	e.note("%s runs a command for headers; usher asks before it does", key)
}

// callbackPort turns the port a client listens on for logins into a redirect
// address. It matters only to clients that are registered by hand.
func (e *entry) callbackPort(v any, path string) {
	n, ok := numeric(v)
	if !ok || n < 1 || n > 65535 || e.s.OAuth == nil || e.s.OAuth.ClientID == "" || e.s.OAuth.RedirectURI != "" {
		return
	}
	e.s.OAuth.RedirectURI = fmt.Sprintf("http://localhost:%d%s", int(n), path)
}

// leftovers are the keys nobody looked at, but for empty ones and a name that
// says nothing new.
func (e *entry) leftovers() map[string]any {
	out := map[string]any{}
	for k, v := range e.keys {
		if !e.used[k] && v != nil && v != "" && (k != "name" || v != e.name) {
			out[k] = v
		}
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
