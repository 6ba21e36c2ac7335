package policy

import (
	"strings"
	"testing"

	"github.com/usher-mcp/usher/internal/jsonx"
)

func TestShape(t *testing.T) {
	big := `{"name":"x","arguments":{"a":"` + strings.Repeat("s", maxShaped) + `"}}`
	for params, want := range map[string]string{
		`{"name":"x"}`: "", `{"name":"x","arguments":{}}`: "", `{"name":"x","arguments":[1]}`: "",
		`{"name":"x","arguments":{"query":"secret words","limit":3,"deep":{"token":"hunter2"},"list":["a"],"yes":true,"no":null}}`: "query: string(12), limit: number, deep: object, list: array, yes: boolean, no: null",
		big: "8225 bytes",
	} {
		if got := string(Finished{params: []byte(params)}.Shape(nil)); got != want {
			t.Errorf("%.60s: %q, want %q", params, got, want)
		}
	}
	if got := string(Finished{arguments: []byte(`{"a":"ä"}`)}.Shape(nil)); got != "a: string(1)" {
		t.Errorf("%q", got)
	}
	many := `{` + strings.TrimSuffix(strings.Repeat(`"key-with-a-long-name-that-goes-on-and-on-and-on":1,`, 50), ",") + `}`
	if got := string(Finished{arguments: []byte(many)}.Shape(nil)); len(got) > 256 || !strings.HasSuffix(got, "…") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

// No value ever shows, whatever it is.
func FuzzShape(f *testing.F) {
	f.Add("hunter2", `{"a":1}`)
	f.Add("a \"quoted\" \\ text", `["`)
	f.Fuzz(func(t *testing.T, value, rest string) {
		args := `{"k":` + string(jsonx.Quote(value)) + `,"l":` + rest + `}`
		got := string(Finished{arguments: []byte(args)}.Shape(nil))
		if !strings.HasPrefix(got, "k: string(") && len(args) <= maxShaped || len(got) > 300 {
			t.Errorf("%q shows %q", args, got)
		}
		got = strings.TrimPrefix(got, "k: string(")
		if len(value) > 4 && !strings.Contains(rest, value) && !strings.Contains("), l: object array string number boolean null bytes", value) && strings.Contains(got, value) {
			t.Errorf("%q shows %q", args, got)
		}
	})
}
