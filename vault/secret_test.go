package vault

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

const hidden = "tok-s3cr3t-value"

// leaks says whether out has the secret in any form fmt might give it.
func leaks(out string) bool {
	out = strings.ToLower(out)
	for _, form := range []string{hidden, fmt.Sprintf("%x", hidden), fmt.Sprintf("% x", hidden), fmt.Sprint([]byte(hidden))} {
		if strings.Contains(out, strings.ToLower(form)) {
			return true
		}
	}
	return false
}

type holder struct {
	Public Secret
	hidden Secret
	ptr    *Secret
	list   []Secret
	byName map[string]Secret
	any    any
}

func TestSecretNeverPrints(t *testing.T) {
	s := NewSecret(hidden)
	values := map[string]any{
		"secret":  s,
		"pointer": &s,
		"struct":  holder{s, s, &s, []Secret{s}, map[string]Secret{"k": s}, s},
		"slice":   []Secret{s},
		"map":     map[string]Secret{"k": s},
		"error":   fmt.Errorf("refresh %v: %s", s, s),
	}
	verbs := []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d", "%t", "%10s", "%.3s", "%p", "%w"}
	for name, v := range values {
		for _, verb := range verbs {
			if out := fmt.Sprintf(verb, v); leaks(out) {
				t.Errorf("%s with %s prints the secret: %s", name, verb, out)
			}
		}
		if out := fmt.Sprint(v) + fmt.Sprintln(v); leaks(out) {
			t.Errorf("Sprint of %s prints the secret: %s", name, out)
		}
		if out, err := json.Marshal(v); err != nil || leaks(string(out)) {
			t.Errorf("JSON of %s: %s, %v", name, out, err)
		}
		if out := logged(v); leaks(out) {
			t.Errorf("slog of %s: %s", name, out)
		}
	}
	if out, err := xml.Marshal(s); err != nil || leaks(string(out)) {
		t.Errorf("XML: %s, %v", out, err)
	}
}

func logged(v any) string {
	var buf bytes.Buffer
	slog.New(slog.NewTextHandler(&buf, nil)).Info("m", "v", v)
	slog.New(slog.NewJSONHandler(&buf, nil)).Info("m", slog.Group("g", "v", v))
	return buf.String()
}

func TestSecretFingerprint(t *testing.T) {
	a, b := NewSecret("a"), NewSecret("b")
	if a.String() == b.String() || a.String() != NewSecret("a").String() {
		t.Errorf("fingerprints %s, %s do not tell secrets apart", a, b)
	}
	want := a.String()
	for _, got := range []string{fmt.Sprint(a), fmt.Sprintf("%#v", a), fmt.Sprintf("%x", a), a.LogValue().String()} {
		if got != want {
			t.Errorf("printed %s, want %s", got, want)
		}
	}
	if got := (Secret{}).String(); got != "secret()" {
		t.Errorf("empty secret prints %s", got)
	}
}

func TestSecretValue(t *testing.T) {
	s := NewSecret(hidden)
	if s.Reveal() != hidden || s.IsZero() || (Secret{}).Reveal() != "" || !NewSecret("").IsZero() {
		t.Error("Reveal or IsZero is wrong")
	}
	if !s.Equal(NewSecret(hidden)) || s.Equal(NewSecret("x")) || s.Equal(Secret{}) || !(Secret{}).Equal(NewSecret("")) {
		t.Error("Equal is wrong")
	}
}

func TestSecretDecodes(t *testing.T) {
	var v struct {
		Token Secret `json:"token"`
		None  Secret `json:"none,omitzero"`
	}
	if err := json.Unmarshal([]byte(`{"token":"abc","none":null}`), &v); err != nil || v.Token.Reveal() != "abc" {
		t.Fatalf("decoded %q, %v", v.Token.Reveal(), err)
	}
	out, err := json.Marshal(v)
	if err != nil || string(out) != `{"token":"`+v.Token.String()+`"}` {
		t.Errorf("encoded %s, %v", out, err)
	}
	// What was encoded without Reveal is lost; reading it back must say so.
	if err := json.Unmarshal(out, &v); err == nil {
		t.Error("a fingerprint was taken for a secret")
	}
	if err := json.Unmarshal([]byte(`{"token":"secret(sauce)"}`), &v); err != nil {
		t.Errorf("text that only looks a little like a fingerprint: %v", err)
	}
}
