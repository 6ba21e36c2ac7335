package wire

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
)

func TestEncodeHeader(t *testing.T) {
	for in, want := range map[string]string{
		"":                         "",
		"us-west1":                 "us-west1",
		"two words":                "two words",
		"~!\"'":                    "~!\"'",
		"Hello, 世界":                "=?base64?SGVsbG8sIOS4lueVjA==?=",
		" padded ":                 "=?base64?IHBhZGRlZCA=?=",
		" x":                       "=?base64?IHg=?=",
		"x ":                       "=?base64?eCA=?=",
		"\tx":                      "=?base64?CXg=?=",
		"a\tb":                     "=?base64?YQli?=",
		"line1\nline2":             "=?base64?bGluZTEKbGluZTI=?=",
		"a\r\nX-Evil: 1":           "=?base64?YQ0KWC1FdmlsOiAx?=",
		"\x00":                     "=?base64?AA==?=",
		"\x7f":                     "=?base64?fw==?=",
		"=?base64?literal?=":       "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=",
		"=?base64??=":              "=?base64?PT9iYXNlNjQ/Pz0=?=",
		"=?base64?=":               "=?base64?PT9iYXNlNjQ/PQ==?=", // begins and ends like a sentinel
		"=?base64?open":            "=?base64?open",
		"=?BASE64?x?=":             "=?BASE64?x?=",
		"file:///a%20b?c=d#e&f=?=": "file:///a%20b?c=d#e&f=?=",
	} {
		got := EncodeHeader(in)
		if got != want {
			t.Errorf("EncodeHeader(%q) = %q, want %q", in, got, want)
		}
		if back, err := DecodeHeader(got); err != nil || back != in {
			t.Errorf("DecodeHeader(%q) = %q, %v, want %q", got, back, err, in)
		}
	}
}

func TestDecodeHeader(t *testing.T) {
	for _, tt := range []struct {
		in, want string
		ok       bool
	}{
		{"plain", "plain", true},
		{"=?base64?SGVsbG8=?=", "Hello", true},
		{"=?base64??=", "", true},
		{"=?base64?=", "=?base64?=", true},                   // no room for both markers
		{"=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?=", true}, // markers are case-sensitive
		{"=?base64?SGVsbG8=", "=?base64?SGVsbG8=", true},
		{"x=?base64?SGVsbG8=?=", "x=?base64?SGVsbG8=?=", true},
		{"=?base64?SGVsbG8?=", "", false},    // padding missing
		{"=?base64?SGVsbG9=?=", "", false},   // stray bits: two texts for one value
		{"=?base64?SGV%bG8=?=", "", false},   // no base64
		{"=?base64?SGVs\nbG8=?=", "", false}, // on two lines
		{"=?base64?SGVs\rbG8=?=", "", false},
		{"=?base64?_-8=?=", "", false}, // another alphabet
	} {
		got, err := DecodeHeader(tt.in)
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("DecodeHeader(%q) = %q, %v, want %q, ok %v", tt.in, got, err, tt.want, tt.ok)
		}
	}
}

// FuzzHeader checks that every text survives a header, and that what goes into one
// is what HTTP can carry.
func FuzzHeader(f *testing.F) {
	for _, s := range []string{"", "a", " a", "a\t", "a\tb", "é", "\r\n", "=?base64?YQ==?=", "=?base64?=", "=?base64??=", "=?base64?a", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v := EncodeHeader(s)
		for i := range len(v) {
			if v[i] < 0x20 || v[i] > 0x7e {
				t.Fatalf("EncodeHeader(%q) = %q", s, v)
			}
		}
		if strings.TrimSpace(v) != v {
			t.Fatalf("EncodeHeader(%q) = %q has space at an end", s, v)
		}
		if back, err := DecodeHeader(v); err != nil || back != s {
			t.Fatalf("DecodeHeader(EncodeHeader(%q)) = %q, %v", s, back, err)
		}
		// The input as a header from outside.
		got, err := DecodeHeader(s)
		inner, wrapped := strings.CutPrefix(s, "=?base64?")
		if wrapped {
			inner, wrapped = strings.CutSuffix(inner, "?=")
		}
		switch {
		case !wrapped && (err != nil || got != s):
			t.Fatalf("DecodeHeader(%q) = %q, %v", s, got, err)
		case wrapped && err == nil && base64.StdEncoding.EncodeToString([]byte(got)) != inner:
			t.Fatalf("DecodeHeader(%q) = %q, which has another encoding", s, got)
		}
	})
}

// TestHeaderNames: http.Header is a map, so names must have the form its methods use.
func TestHeaderNames(t *testing.T) {
	for _, h := range []string{HeaderVersion, HeaderSession, HeaderMethod, HeaderName, HeaderParamPrefix + "X", HeaderLastEvent} {
		if http.CanonicalHeaderKey(h) != h {
			t.Errorf("%s is not canonical", h)
		}
	}
}
