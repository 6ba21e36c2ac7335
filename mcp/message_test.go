package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/internal/jsonx"
)

// parts is a message in a form that reads well in a diff.
type parts struct {
	Kind                              Kind
	ID, Method, Params, Result, Error string
}

func partsOf(m Message) parts {
	p := parts{m.Kind(), "", m.Method, string(m.Params), string(m.Result), string(m.Error)}
	if m.ID.Present() {
		p.ID = m.ID.JSON()
	}
	return p
}

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     parts
	}{
		{"request", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"a":1}}`, parts{KindRequest, "1", "tools/call", `{"a":1}`, "", ""}},
		{"without params", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, parts{KindRequest, "1", "ping", "", "", ""}},
		{"null params", `{"jsonrpc":"2.0","id":1,"method":"ping","params":null}`, parts{KindRequest, "1", "ping", "", "", ""}},
		{"array params", `{"jsonrpc":"2.0","id":1,"method":"x","params":[1]}`, parts{KindRequest, "1", "x", "[1]", "", ""}},
		{"all members, null where they do not apply", `{"jsonrpc":"2.0","id":1,"method":"x","params":null,"result":null,"error":null}`, parts{KindRequest, "1", "x", "", "", ""}},
		{"notification", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, parts{KindNotification, "", "notifications/initialized", "", "", ""}},
		{"result", `{"jsonrpc":"2.0","id":"a","result":{"x": 1}}`, parts{KindResponse, `"a"`, "", "", `{"x": 1}`, ""}},
		{"null result", `{"jsonrpc":"2.0","id":"a","result":null}`, parts{KindResponse, `"a"`, "", "", `null`, ""}},
		{"result and null error", `{"jsonrpc":"2.0","id":1,"result":{},"error":null}`, parts{KindResponse, `1`, "", "", `{}`, ""}},
		{"null result and error", `{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":1}}`, parts{KindResponse, `1`, "", "", "", `{"code":1}`}},
		{"null result and null error", `{"jsonrpc":"2.0","id":1,"result":null,"error":null}`, parts{KindResponse, `1`, "", "", "null", ""}},
		{"error without id", `{"jsonrpc":"2.0","error":{"code":1}}`, parts{KindResponse, "", "", "", "", `{"code":1}`}},
		{"error with null id", `{"jsonrpc":"2.0","id":null,"error":{"code":1}}`, parts{KindResponse, "null", "", "", "", `{"code":1}`}},
		{"error that is a string", `{"jsonrpc":"2.0","id":1,"error":"x"}`, parts{KindResponse, "1", "", "", "", `"x"`}},
		{"unknown members", `{"jsonrpc":"2.0","id":1,"method":"x","extra":1,"more":{}}`, parts{KindRequest, "1", "x", "", "", ""}},
		{"unknown method", `{"jsonrpc":"2.0","id":1,"method":"\u0061/é"}`, parts{KindRequest, "1", "a/é", "", "", ""}},
		{"escaped well-known method", `{"jsonrpc":"2.0","id":1,"method":"tools\/call"}`, parts{KindRequest, "1", "tools/call", "", "", ""}},
		{"escaped names", `{"json\u0072pc":"2.0","\u0069d":1,"metho\u0064":"x"}`, parts{KindRequest, "1", "x", "", "", ""}},
		{"spaces", " {\r\n\t\"jsonrpc\" : \"2.0\" , \"method\" : \"x\" , \"params\" : { } } \n", parts{KindNotification, "", "x", "{ }", "", ""}},
		{"big integer id", `{"jsonrpc":"2.0","id":9007199254740993,"method":"x"}`, parts{KindRequest, "9007199254740993", "x", "", "", ""}},
		{"fraction id", `{"jsonrpc":"2.0","id":1.50,"method":"x"}`, parts{KindRequest, "1.50", "x", "", "", ""}},
		{"escaped id", `{"jsonrpc":"2.0","id":"\u0031","method":"x"}`, parts{KindRequest, `"\u0031"`, "x", "", "", ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Parse([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, partsOf(m)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if want := strings.Trim(tt.in, " \n"); string(m.Raw) != want {
				t.Errorf("Raw = %q, want %q", m.Raw, want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	var members strings.Builder
	for i := range 65 {
		fmt.Fprintf(&members, `,"x%d":0`, i)
	}
	deep := strings.Repeat("[", 1000) + strings.Repeat("]", 1000)
	for _, tt := range []struct {
		name, in, want string // want is a part of the message
	}{
		{"nothing", ``, "an object is expected"},
		{"a string", `"x"`, "an object is expected"},
		{"cut off", `{"jsonrpc":"2.0","id":1,"method":"x"`, "does not end"},
		{"text behind", `{"jsonrpc":"2.0","id":1,"method":"x"}{}`, "more text"},
		{"vertical tab before", "\v" + `{"jsonrpc":"2.0","method":"x"}`, "an object is expected"},
		{"no-break space behind", `{"jsonrpc":"2.0","method":"x"}` + "\u00a0", "more text"},
		{"byte order mark", "\ufeff" + `{"jsonrpc":"2.0","method":"x"}`, "an object is expected"},
		{"invalid UTF-8", `{"jsonrpc":"2.0","method":"x","params":{"a":"` + "\xff" + `"}}`, "UTF-8"},
		{"too deep", `{"jsonrpc":"2.0","method":"x","params":` + deep + `}`, "too deep"},
		{"no version", `{"id":1,"method":"x"}`, "jsonrpc"},
		{"version 1", `{"jsonrpc":"1.0","id":1,"method":"x"}`, "jsonrpc"},
		{"version as number", `{"jsonrpc":2.0,"id":1,"method":"x"}`, "jsonrpc"},
		{"escaped version", `{"jsonrpc":"2\u002e0","id":1,"method":"x"}`, "jsonrpc"},
		{"neither", `{"jsonrpc":"2.0","id":1}`, "no method, result or error"},
		{"null error only", `{"jsonrpc":"2.0","id":1,"error":null}`, "no method, result or error"},
		{"method and result", `{"jsonrpc":"2.0","id":1,"method":"x","result":{}}`, "a method and a result"},
		{"method and error", `{"jsonrpc":"2.0","id":1,"method":"x","error":{}}`, "a method and a result"},
		{"result and error", `{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`, "a result and an error"},
		{"request with null id", `{"jsonrpc":"2.0","id":null,"method":"x"}`, "must not be null"},
		{"result without id", `{"jsonrpc":"2.0","result":{}}`, "a result without an id"},
		{"result with null id", `{"jsonrpc":"2.0","id":null,"result":{}}`, "a result without an id"},
		{"object id", `{"jsonrpc":"2.0","id":{},"method":"x"}`, "the id is object"},
		{"boolean id", `{"jsonrpc":"2.0","id":true,"method":"x"}`, "the id is boolean"},
		{"long id", `{"jsonrpc":"2.0","id":"` + strings.Repeat("a", 1024) + `","method":"x"}`, "the id is longer"},
		{"number method", `{"jsonrpc":"2.0","id":1,"method":1}`, "method is number"},
		{"null method", `{"jsonrpc":"2.0","id":1,"method":null}`, "method is null"},
		{"empty method", `{"jsonrpc":"2.0","id":1,"method":""}`, "method is empty"},
		{"long method", `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("a", 256) + `"}`, "method is longer"},
		{"method with NUL", `{"jsonrpc":"2.0","id":1,"method":"tools/call\u0000"}`, "control character"},
		{"method with line break", `{"jsonrpc":"2.0","id":1,"method":"a\r\nb"}`, "control character"},
		{"method with half a pair", `{"jsonrpc":"2.0","id":1,"method":"a\ud800"}`, "not valid text"},
		{"string params", `{"jsonrpc":"2.0","id":1,"method":"x","params":"a"}`, "params is string"},
		{"65 unknown members", `{"jsonrpc":"2.0","method":"x"` + members.String() + `}`, "more than 64"},

		{"duplicate jsonrpc", `{"jsonrpc":"2.0","jsonrpc":"2.0","method":"x"}`, `"jsonrpc" appears twice`},
		{"duplicate id", `{"jsonrpc":"2.0","id":1,"id":1,"method":"x"}`, `"id" appears twice`},
		{"duplicate null id", `{"jsonrpc":"2.0","id":null,"id":1,"method":"x"}`, `"id" appears twice`},
		{"duplicate method", `{"jsonrpc":"2.0","method":"x","method":"x"}`, `"method" appears twice`},
		{"duplicate params", `{"jsonrpc":"2.0","method":"x","params":null,"params":{}}`, `"params" appears twice`},
		{"duplicate result", `{"jsonrpc":"2.0","id":1,"result":1,"result":2}`, `"result" appears twice`},
		{"duplicate error", `{"jsonrpc":"2.0","id":1,"error":null,"error":{}}`, `"error" appears twice`},
		{"duplicate through an escape", `{"jsonrpc":"2.0","method":"x","m\u0065thod":"y"}`, `"method" appears twice`},
		{"duplicate unknown", `{"jsonrpc":"2.0","method":"x","a":1,"a":1}`, `"a" appears twice`},
		{"case", `{"jsonrpc":"2.0","method":"x","Method":"y"}`, `"Method" can be taken for "method"`},
		{"case alone", `{"jsonrpc":"2.0","Method":"y"}`, `"Method" can be taken for "method"`},
		{"case through an escape", `{"jsonrpc":"2.0","method":"x","\u004dethod":"y"}`, `can be taken for "method"`},
		{"long s", `{"jsonrpc":"2.0","method":"x","param\u017f":{}}`, `can be taken for "params"`},
		{"raw long s", `{"jsonrpc":"2.0","method":"x","paramſ":{}}`, `can be taken for "params"`},
		{"dotless i", `{"jsonrpc":"2.0","method":"x","\u0131d":1}`, `can be taken for "id"`},
		{"NUL behind a name", `{"jsonrpc":"2.0","method":"x","id\u0000":1}`, `can be taken for "id"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Parse([]byte(tt.in))
			var env *EnvelopeError
			if !errors.As(err, &env) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			if diff := cmp.Diff(parts{}, partsOf(m)); diff != "" || m.Raw != nil {
				t.Errorf("a refused message has parts\n%s", diff)
			}
		})
	}
}

func TestParseBatch(t *testing.T) {
	if _, err := Parse([]byte(" [] ")); !errors.Is(err, ErrBatch) {
		t.Errorf("got %v", err)
	}
}

func TestParseErrorIsShort(t *testing.T) {
	long := strings.Repeat("\x7f", 1<<20)
	_, err := Parse([]byte(`{"jsonrpc":"2.0","` + long + `":1,"` + long + `":2}`))
	if err == nil || len(err.Error()) > 500 {
		t.Errorf("got an error of %d bytes", len(err.Error()))
	}
}

func TestSplitBatch(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want []string
	}{
		{` {"a":1} `, []string{`{"a":1}`}},
		{`x`, []string{`x`}},
		{``, []string{``}},
		{` [ {"a":1} , 2 ] `, []string{`{"a":1}`, `2`}},
		{`[[1]]`, []string{`[1]`}},
		{`[]`, nil},
		{`[1,]`, nil},
		{`[1`, nil},
		{`[1]x`, nil},
		{"[" + strings.Repeat("0,", 999) + "0]", make([]string, 1000)},
		{"[" + strings.Repeat("0,", 1000) + "0]", nil},
	} {
		got, err := SplitBatch([]byte(tt.in))
		if (err == nil) != (tt.want != nil) || len(got) != len(tt.want) {
			t.Errorf("%.40q: %d messages, %v, want %d", tt.in, len(got), err, len(tt.want))
			continue
		}
		for i, w := range tt.want {
			if w != "" && string(got[i]) != w {
				t.Errorf("%.40q: message %d is %s, want %s", tt.in, i, got[i], w)
			}
		}
	}
}

// FuzzParse holds accepted messages against encoding/json, the careless reader: both
// must see the same, whichever duplicate or case variant it prefers.
func FuzzParse(f *testing.F) {
	for _, s := range envelopes {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := Parse(raw)
		var env *EnvelopeError
		if err != nil {
			if !errors.Is(err, ErrBatch) && !errors.As(err, &env) || m.Raw != nil {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		if !utf8.Valid(raw) || jsonx.Valid(raw) != nil {
			t.Fatalf("%q: accepted, but it is no JSON", raw)
		}
		var std struct {
			JSONRPC string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Method  string          `json:"method"`
			Params  json.RawMessage `json:"params"`
			Result  json.RawMessage `json:"result"`
			Error   json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal(raw, &std); err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		absent := func(raw json.RawMessage, when bool) string {
			if when && string(raw) == "null" {
				return ""
			}
			return string(raw)
		}
		want := parts{m.Kind(), string(std.ID), std.Method, absent(std.Params, true), absent(std.Result, m.Error != nil || m.Method != ""), absent(std.Error, true)}
		if diff := cmp.Diff(want, partsOf(m)); diff != "" || m.Kind() == KindInvalid || std.JSONRPC != "2.0" {
			t.Fatalf("%q (-encoding/json +Parse)\n%s", raw, diff)
		}
		if id, kind := Peek(raw); id != m.ID || kind != m.Kind() {
			t.Fatalf("%q: Peek says %v %v, Parse %v %v", raw, id, kind, m.ID, m.Kind())
		}
	})
}

func FuzzSplitBatch(f *testing.F) {
	for _, s := range envelopes {
		f.Add([]byte(s))
		f.Add([]byte("[" + s + " , " + s + "]"))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := SplitBatch(raw)
		if err != nil {
			return
		}
		if len(got) == 0 || len(got) > 1000 {
			t.Fatalf("%q: %d messages", raw, len(got))
		}
		if trimmed := trimSpace(raw); len(trimmed) == 0 || trimmed[0] != '[' || !utf8.Valid(raw) {
			return
		}
		var want []json.RawMessage
		if err := json.Unmarshal(raw, &want); err != nil || len(want) != len(got) {
			t.Fatalf("%q: %d messages, want %d, %v", raw, len(got), len(want), err)
		}
		for i := range want {
			if string(trimSpace(want[i])) != string(got[i]) {
				t.Fatalf("%q: message %d is %q, want %q", raw, i, got[i], want[i])
			}
		}
	})
}
