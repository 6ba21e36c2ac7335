package config

import (
	"reflect"
	"strings"

	"github.com/usher-mcp/usher/config/template"
)

// Masked returns a copy that may be printed: literal credentials are replaced
// by Mask, placeholders stay as they are written. It goes by looks too, so a
// harmless value may be hidden now and then.
func (s Server) Masked() Server {
	return s.conceal(template.Masker())
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
	c := template.Concealer{Moving: true, Replace: func(key, value string) string {
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
		if template.ValidSecretName(string(r)) {
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
func (s Server) conceal(c template.Concealer) Server {
	out := s.clone()
	_ = out.walk(func(f field, v string) (string, error) { // never fails
		switch f.kind {
		case secretField:
			return c.All(f.key, v), nil
		case valueField:
			return c.Value(f.key, v), nil
		case argField:
			return v, nil // needs its neighbours: below
		case commandField:
			return c.Prose(f.key, v), nil
		case urlField:
			return c.URL(f.key, v), nil
		}
		return c.Value("", v), nil
	})
	out.Args = c.Args(out.Args)
	if out.Foreign != nil {
		for k, v := range out.Foreign.Keys {
			shown := template.MaskTree(k, v)
			if c.Moving && !reflect.DeepEqual(shown, v) {
				delete(out.Foreign.Keys, k) // a note for an export; not worth a secret
				continue
			}
			out.Foreign.Keys[k] = shown
		}
	}
	return out
}
