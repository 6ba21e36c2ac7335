package mcp

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/internal/jsonx"
)

func TestParseError(t *testing.T) {
	for _, tt := range []struct {
		raw  string
		want Error
		text string
	}{
		{`{"code":-32601,"message":"no","data":{"a": 1}}`, Error{Code: -32601, Message: "no", Data: []byte(`{"a": 1}`)}, "no (code -32601)"},
		{`{"code":-32601.0,"message":"n\u00f3"}`, Error{Code: -32601, Message: "nó"}, "nó (code -32601)"},
		{`{"code":-3.2601e4}`, Error{Code: -32601}, "an error without a message (code -32601)"},
		{`{"code":1.5,"message":"x"}`, Error{Message: "x"}, "x (code 0)"},
		{`{"code":1e300,"message":"x"}`, Error{Message: "x"}, "x (code 0)"},
		{`{"code":1e400,"message":"x"}`, Error{Message: "x"}, "x (code 0)"},
		{`{"code":"-32601","message":5}`, Error{}, "an error without a message (code 0)"},
		{`{"message":"x","data":null}`, Error{Message: "x", Data: []byte(`null`)}, "x (code 0)"},
		{`"boom"`, Error{Message: "boom"}, "boom (code 0)"},
		{`{}`, Error{}, "an error without a message (code 0)"},
		{`[1]`, Error{}, "an error without a message (code 0)"},
		{``, Error{}, "an error without a message (code 0)"},
	} {
		tt.want.Raw = []byte(tt.raw)
		got := ParseError([]byte(tt.raw))
		if diff := cmp.Diff(&tt.want, got); diff != "" || got.Error() != tt.text {
			t.Errorf("%s: %q, want %q (-want +got)\n%s", tt.raw, got.Error(), tt.text, diff)
		}
	}
}

func TestErrorJSON(t *testing.T) {
	e := Errorf(CodeInvalidParams, "a %q\n", "b")
	if got, want := string(e.JSON()), `{"code":-32602,"message":"a \"b\"\n"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	e.Data = []byte(`{"x":1}`)
	if got, want := string(e.JSON()), `{"code":-32602,"message":"a \"b\"\n","data":{"x":1}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	raw := `{ "message":"x", "odd":9007199254740993 }`
	if got := string(ParseError([]byte(raw)).JSON()); got != raw {
		t.Errorf("got %s, want %s", got, raw)
	}
}

func TestModernCode(t *testing.T) {
	for code := int64(-32110); code < -31990; code++ {
		want := code == -32020 || code == -32021 || code == -32022
		if StatelessCode(code) != want {
			t.Errorf("ModernCode(%d) = %v", code, !want)
		}
	}
}

func TestUnsupportedVersions(t *testing.T) {
	for data, want := range map[string][]string{
		`{"supported":["2025-11-25","2024-11-05"],"requested":"x"}`: {"2025-11-25", "2024-11-05"},
		`{"supported":["a",5,null,"b"]}`:                            {"a", "b"},
		`{"supported":"a"}`:                                         nil,
		`{"Supported":["a"]}`:                                       nil,
		`{}`:                                                        nil,
		``:                                                          nil,
		`[`:                                                         nil,
	} {
		if diff := cmp.Diff(want, UnsupportedVersions(&Error{Data: []byte(data)})); diff != "" {
			t.Errorf("%s (-want +got)\n%s", data, diff)
		}
	}
	many := []byte(`{"supported":[` + strings.Repeat(`"a",`, 5000) + `"a"]}`)
	if got := len(UnsupportedVersions(&Error{Data: many})); got != 100 {
		t.Errorf("got %d versions of 5,001", got)
	}
}

func FuzzParseError(f *testing.F) {
	for _, s := range []string{`{"code":-32601,"message":"no","data":{"supported":["a"]}}`, `{"code":1e400}`, `"x"`, `{"code":-0}`, `{`, ``, `{"message":"\ud800"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		e := ParseError(raw)
		_ = UnsupportedVersions(e)
		if e.Error() == "" || e.Code > maxSafe || e.Code < -maxSafe {
			t.Fatalf("%q: %+v", raw, e)
		}
		if jsonx.Valid(raw) != nil {
			return
		}
		own := (&Error{Code: e.Code, Message: e.Message, Data: e.Data}).JSON()
		if err := jsonx.Valid(own); err != nil {
			t.Fatalf("%q became %q: %v", raw, own, err)
		}
		var std map[string]json.RawMessage // exact names, the last of duplicates
		if json.Unmarshal(raw, &std) != nil || std["code"] == nil {
			return
		}
		var code float64
		if json.Unmarshal(std["code"], &code) != nil || code != math.Trunc(code) || math.Abs(code) > maxSafe {
			code = 0
		}
		if e.Code != int64(code) {
			t.Fatalf("%q: code %d, encoding/json says %v", raw, e.Code, code)
		}
	})
}
