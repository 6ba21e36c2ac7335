package config

import (
	"reflect"
	"strings"
)

// Mask is what a credential is printed as.
const Mask = "****"

// Masked returns a copy that may be printed: literal credentials are replaced
// by Mask, placeholders stay as they are written. It goes by looks too, so a
// harmless value may be hidden now and then.
func (s Server) Masked() Server {
	return s.conceal(masker())
}

// MaskArgs hides credentials in a command line, given as its arguments.
func MaskArgs(args []string) []string {
	return masker().args(args)
}

// maskValue hides a value if its key or its looks give it away.
func maskValue(key, v string) string {
	return masker().value(key, v)
}

// String writes the placeholder so that it may be printed.
func (p Placeholder) String() string {
	return masker().placeholder(p, "", false)
}

// MovedSecret is a literal credential that MoveSecrets took out of a server.
// Only Reveal gives it away.
type MovedSecret struct {
	Name  string // of the ${secret:NAME} that stands in its place
	value string
}

// Reveal returns the credential.
func (m MovedSecret) Reveal() string { return m.value }

// String returns the name only.
func (m MovedSecret) String() string { return "secret " + m.Name }

// GoString returns the name only.
func (m MovedSecret) GoString() string { return m.String() }

// MoveSecrets returns a copy in which literal credentials are placeholders
// ${secret:SERVER/KEY}, and the credentials, to be stored under those names.
// clean is false when some could not be moved, as inside a ${cmd:…}.
func (s Server) MoveSecrets() (out Server, moved []MovedSecret, clean bool) {
	names := map[string]string{} // name → value
	c := concealer{moving: true, replace: func(key, value string) string {
		base := secretName(s.Name, key)
		name := base
		for n := '2'; ; n++ {
			old, taken := names[name]
			if !taken {
				names[name] = value
				moved = append(moved, MovedSecret{Name: name, value: value})
			}
			if !taken || old == value {
				return "${secret:" + name + "}"
			}
			name = base + "-" + string(n)
		}
	}}
	out = s.conceal(c)
	return out, moved, out.Masked().sameStrings(out)
}

// secretName makes SERVER/KEY out of what secret names may hold.
func secretName(server, key string) string {
	if key == "" {
		key = "value"
	}
	name := strings.Map(func(r rune) rune {
		if validSecretName(string(r)) {
			return r
		}
		return '-'
	}, server+"/"+key)
	return name[:min(len(name), 100)]
}

func (s Server) sameStrings(o Server) bool {
	list := func(s Server) (out []string) {
		c := s.clone()
		_ = c.walk(func(_ field, v string) (string, error) { // never fails
			out = append(out, v)
			return v, nil
		})
		return out
	}
	return strings.Join(list(s), "\x00") == strings.Join(list(o), "\x00")
}

// conceal replaces the credentials of every field.
func (s Server) conceal(c concealer) Server {
	out := s.clone()
	_ = out.walk(func(f field, v string) (string, error) { // never fails
		switch f.kind {
		case secretField:
			return c.all(f.key, v), nil
		case valueField:
			return c.value(f.key, v), nil
		case argField:
			return v, nil // needs its neighbours: below
		case commandField:
			return c.prose(f.key, v), nil
		case urlField:
			return c.url(f.key, v), nil
		}
		return c.value("", v), nil
	})
	out.Args = c.args(out.Args)
	if out.Foreign != nil {
		for k, v := range out.Foreign.Keys {
			shown := maskTree(k, v)
			if c.moving && !reflect.DeepEqual(shown, v) {
				delete(out.Foreign.Keys, k) // a note for an export; not worth a secret
				continue
			}
			out.Foreign.Keys[k] = shown
		}
	}
	return out
}

// maskTree masks the strings of decoded JSON by their keys.
func maskTree(key string, v any) any {
	switch t := v.(type) {
	case string:
		if shown := maskValue(key, EscapeLiteral(t)); shown != EscapeLiteral(t) {
			return shown
		}
		return t
	case map[string]any:
		out := make(map[string]any, len(t))
		for k, e := range t {
			out[k] = maskTree(k, e)
		}
		return out
	case []any:
		out := make([]any, len(t))
		for i, e := range t {
			out[i] = maskTree(key, e)
		}
		return out
	}
	return v
}
