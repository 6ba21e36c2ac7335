package pins

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/usher-mcp/usher/internal/jsonx"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const mutant = `{
  "name": "read_file",
  "title": "Read a file",
  "description": "Reads a text file.\nReturns its lines.",
  "inputSchema": {
    "type": "object",
    "properties": {
      "path": {"type": "string", "description": "where it is", "maxLength": 200},
      "mode": {"type": ["string", "null"], "enum": ["text", "bytes"], "default": "text"},
      "lines": {"type": "array", "items": {"type": "integer", "minimum": 1}}
    },
    "required": ["path", "mode"],
    "additionalProperties": false
  },
  "outputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
  "annotations": {"readOnlyHint": true, "destructiveHint": false, "openWorldHint": false, "title": "Read"},
  "icons": [{"src": "https://example.com/a.png", "mimeType": "image/png"}],
  "execution": {"taskSupport": "forbidden"},
  "_meta": {"example.com/level": 1, "example.com/big": 9007199254740993}
}`

func described(name, text string) string {
	return fmt.Sprintf(`{"name":%s,"description":%s}`, jsonx.Quote(name), jsonx.Quote(text))
}

func FuzzDecode(f *testing.F) {
	rec, _ := decode(nil)
	if _, _, _, err := rec.observe(f.Context(), []Definition{NewDefinition([]byte(mutant)), NewDefinition([]byte(described("a", "x")))}, time.Unix(0, 0)); err != nil {
		f.Fatal(err)
	}
	if _, _, _, err := rec.observe(f.Context(), []Definition{NewDefinition([]byte(described("a", "y")))}, time.Unix(1, 0)); err != nil {
		f.Fatal(err)
	}
	data, err := rec.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"version":1,"tools":{"a":null}}`))
	f.Add([]byte("{\"tools\":{\"a\":{\"size\":-1}}}\n{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		rec, err := decode(data)
		if err != nil {
			return
		}
		for name, p := range rec.Tools {
			p.pinned("s", name)
		}
		out, err := rec.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decode(out); err != nil {
			t.Fatalf("%q was written as %q, which cannot be read: %v", data, out, err)
		}
	})
}

func TestHidden(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"plain", ""},
		{"two\\nlines\\tand a tab", ""},
		{"zażółć 日本語", ""},
		{"⚠️ careful", ""},
		{"👨‍👩‍👧 family 👍🏽 1️⃣", ""},
		{"a\u200bb", "description"},
		{"a\\u200bb", "description"},
		{"a\u202eb", "description"},
		{"a\U000E0041", "description"},
		{"a\u00adb", "description"},
		{"a\\u0007b", "description"},
		{"a\ufe0fb", "description"},
		{"a\u200db", "description"},
		{"⚠\ufe0f\ufe0f\ufe0f", "description"},
		{"\u2028", "description"},
		{"\ue000", "description"},
	} {
		got := strings.Join(Hidden([]byte(`{"name":"x","description":"`+tt.text+`"}`)), ",")
		if got != tt.want {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
	nested := `{"name":"x","inputSchema":{"properties":{"a":{"enum":["b\u200bc"]}}},"_meta":{"k\u2060":1}}`
	if got := strings.Join(Hidden([]byte(nested)), ","); got != "inputSchema,_meta" {
		t.Errorf("nested: %q", got)
	}
}
