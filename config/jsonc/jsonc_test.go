package jsonc

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecode(t *testing.T) {
	got, err := Decode("f", []byte(BOM+"{\"a\": [1, /* two */ 9007199254740993,], // x\n}"))
	want := map[string]any{"a": []any{json.Number("1"), json.Number("9007199254740993")}}
	if diff := cmp.Diff(any(want), got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	_, err = Decode("f", []byte("{\n  \"a\" 1}"))
	if e, ok := errors.AsType[*Error](err); !ok || e.Line != 2 || e.Column != 7 {
		t.Errorf("%+v", err)
	}
}

func TestCommaAfter(t *testing.T) {
	for text, want := range map[string]int{"1 /* , */ , 2": 10, "1 // ,\n]": -1} {
		if got := CommaAfter([]byte(text), 1); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
