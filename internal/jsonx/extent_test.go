package jsonx

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestExtent(t *testing.T) {
	for _, tt := range []struct {
		in            string
		depth, values int
	}{
		{`1`, 0, 0},
		{`"[{,"`, 0, 0},
		{`{}`, 1, 0},
		{` [ ] `, 1, 0},
		{`{"a":1}`, 1, 1},
		{`{"a":1,"b":[1,2,{}]}`, 3, 5},
		{`{"a\"{":"}]","b":{"c":[[]]}}`, 4, 4},
		{`[[],[],[[[]]]]`, 4, 5},
	} {
		if depth, values := Extent([]byte(tt.in)); depth != tt.depth || values != tt.values {
			t.Errorf("%s: %d, %d, want %d, %d", tt.in, depth, values, tt.depth, tt.values)
		}
	}
}

func TestEachText(t *testing.T) {
	var got []string
	EachText([]byte(`{"a":["b",{"c\n":1}],"d":"\u00e9\"","e":""}`), func(text []byte) bool {
		got = append(got, string(text))
		return string(text) != "d"
	})
	if want := []string{"a", "b", "c\n", "d"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// FuzzExtent compares with a walk over decoded values, and the number of texts with
// the number of strings that another reader finds.
func FuzzExtent(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if Valid(raw) != nil {
			return
		}
		depth, values := Extent(raw)
		if wantDepth, wantValues := extent(raw); depth != wantDepth || values != wantValues {
			t.Fatalf("%q: %d, %d, want %d, %d", raw, depth, values, wantDepth, wantValues)
		}
		texts := 0
		EachText(raw, func([]byte) bool { texts++; return true })
		want := 0
		for dec := numbers(raw); ; {
			token, err := dec.Token()
			if err != nil {
				break
			}
			if _, ok := token.(string); ok {
				want++
			}
		}
		if texts != want {
			t.Fatalf("%q: %d texts, want %d", raw, texts, want)
		}
	})
}

func extent(raw []byte) (depth, values int) {
	inner := func(v []byte) {
		d, n := extent(v)
		depth, values = max(depth, d), values+n+1
	}
	switch TypeOf(raw) {
	case "object":
		for m := Object(raw); m.Next(); {
			inner(m.Value)
		}
	case "array":
		for e := Array(raw); e.Next(); {
			inner(e.Value)
		}
	default:
		return 0, 0
	}
	return depth + 1, values
}

func numbers(raw []byte) *json.Decoder {
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	return dec
}
