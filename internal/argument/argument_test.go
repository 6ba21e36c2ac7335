package argument

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParse(t *testing.T) {
	for _, tt := range []struct{ text, prop, value, want string }{
		{"3", `{"type":"integer"}`, "3", ""},
		{"12345678901234567890", `{"type":"integer"}`, "12345678901234567890", ""},
		{"3.5", `{"type":"integer"}`, "", "a whole number"},
		{"3.5", `{"type":"number"}`, "3.5", ""},
		{"x", `{"type":"number"}`, "", "a number"},
		{"true", `{"type":"boolean"}`, "true", ""},
		{"1", `{"type":"boolean"}`, "", "true or false"},
		{`[1]`, `{"type":"array"}`, "[1]", ""},
		{`{}`, `{"type":"array"}`, "", "a JSON array"},
		{"x", `{"type":"null"}`, "null", ""},
		{"3", `{"type":"string"}`, `"3"`, ""},
		{"3", `{"type":["string","integer"]}`, `"3"`, ""},
		{"3", `{"type":["integer","null"]}`, "3", ""},
		{"3", `{"enum":[1,"3"]}`, `"3"`, ""},
		{"3", `{"anyOf":[{"type":"string"},{"type":"integer"}]}`, `"3"`, ""},
		{"3", `{"anyOf":[{"type":"integer"}]}`, "3", ""},
		{"3", "", `"3"`, ""},
	} {
		var prop []byte
		if tt.prop != "" {
			prop = []byte(tt.prop)
		}
		if value, want := Parse(tt.text, prop); string(value) != tt.value || want != tt.want {
			t.Errorf("%s as %s: %s, %q; want %s, %q", tt.text, tt.prop, value, want, tt.value, tt.want)
		}
	}
}
