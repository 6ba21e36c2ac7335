package mcp

import (
	"errors"
	"strings"
	"testing"
)

func TestPeek(t *testing.T) {
	for _, tt := range []struct {
		name, prefix, id string
		kind             Kind
	}{
		{"response cut in its result", `{"jsonrpc":"2.0","id":12,"result":{"a":"xxxx`, "12", KindResponse},
		{"error cut", `{"jsonrpc":"2.0","id":"a","error":{`, `"a"`, KindResponse},
		{"request cut in its params", `{"jsonrpc":"2.0","id":12,"method":"x","params":{"a":[`, "12", KindRequest},
		{"notification cut", `{"jsonrpc":"2.0","method":"x","params":{"a":[`, "", KindNotification},
		{"id behind the cut", `{"jsonrpc":"2.0","result":{"a":"xxxx`, "", KindResponse},
		{"id at the cut", `{"result":{},"id":12`, "", KindResponse},
		{"id at the cut with its end", `{"result":{},"id":12,`, "12", KindResponse},
		{"string id at the cut", `{"result":{},"id":"12`, "", KindResponse},
		{"whole string id at the cut", `{"result":{},"id":"12"`, `"12"`, KindResponse},
		{"exponent at the cut", `{"result":{},"id":1e`, "", KindResponse},
		{"no kind yet", `{"jsonrpc":"2.0","id":12,`, "12", KindInvalid},
		{"two ids", `{"id":1,"id":2,"result":{`, "", KindResponse},
		{"two ids, one cut", `{"id":1,"result":{},"id":2`, "", KindResponse},
		{"id that is none", `{"id":{},"method":"x"}`, "", KindRequest},
		{"both", `{"id":1,"method":"x","result":{}}`, "1", KindInvalid},
		{"request with null for the rest", `{"id":1,"error":null,"method":"x","result":null}`, "1", KindRequest},
		{"null result", `{"id":1,"result":null}`, "1", KindResponse},
		{"nested id does not count", `{"result":{"id":5},"x":{"id":6}}`, "", KindResponse},
		{"escaped name", `{"\u0069d":5,"result":{`, "5", KindResponse},
		{"bytes that are no UTF-8", "{\"id\":5,\"result\":\"\xff", "5", KindResponse},
		{"id that is no UTF-8", "{\"id\":\"\xff\",\"result\":", "", KindResponse},
		{"no object", `[{"id":1`, "", KindInvalid},
		{"nothing", ``, "", KindInvalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			id, kind := Peek([]byte(tt.prefix))
			got := ""
			if id.Present() {
				got = id.JSON()
			}
			if got != tt.id || kind != tt.kind {
				t.Errorf("got %q %v, want %q %v", got, kind, tt.id, tt.kind)
			}
			if peeked, ok := PeekID([]byte(tt.prefix)); ok != (tt.id != "") || peeked != id {
				t.Errorf("PeekID = %v, %v", peeked, ok)
			}
		})
	}
}

func TestEnvelopeErrorNamesTheCaller(t *testing.T) {
	for _, tt := range []struct {
		name, in, id string
		kind         Kind
	}{
		{"response that is no UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"\xff\"}", "7", KindResponse},
		{"id behind what is wrong", `{"jsonrpc":"2.0","method":5,"id":7}`, "7", KindRequest},
		{"cut response", `{"jsonrpc":"2.0","id":7,"result":{"a"`, "7", KindResponse},
		{"wrong version", `{"jsonrpc":"3","id":7,"result":{}}`, "7", KindResponse},
		{"two ids", `{"jsonrpc":"2.0","id":7,"id":8,"result":{}}`, "null", KindResponse},
		{"bad params", `{"jsonrpc":"2.0","id":7,"method":"x","params":1}`, "7", KindRequest},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse([]byte(tt.in))
			var env *EnvelopeError
			if !errors.As(err, &env) || env.ID.JSON() != tt.id || env.Kind != tt.kind {
				t.Errorf("got %+v, want id %s, kind %v", env, tt.id, tt.kind)
			}
		})
	}
}

// FuzzPeekID cuts messages anywhere: an id that is found is the id of the whole.
func FuzzPeekID(f *testing.F) {
	for _, s := range envelopes {
		f.Add([]byte(s), uint(len(s)/2))
	}
	f.Add([]byte(`{"jsonrpc":"2.0","result":{},"id":1234567}`), uint(38))
	f.Add([]byte(`{"jsonrpc":"2.0","result":{},"id":1.5e+3}`), uint(37))
	f.Fuzz(func(t *testing.T, raw []byte, cut uint) {
		prefix := raw[:cut%uint(len(raw)+1)]
		id, kind := Peek(prefix)
		m, err := Parse(raw)
		if err != nil || strings.TrimLeft(string(prefix), " \t\r\n") == "" {
			return
		}
		if id.Present() && id != m.ID {
			t.Fatalf("%q cut to %q: id %v, want %v", raw, prefix, id, m.ID)
		}
		if kind == KindRequest && m.Kind() != KindRequest {
			t.Fatalf("%q cut to %q: kind %v, want %v", raw, prefix, kind, m.Kind())
		}
	})
}
