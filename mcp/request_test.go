package mcp

import "testing"

// TestRequestReadsParamsOnce: fields that were read of some params are not taken for
// the fields of others.
func TestRequestReadsParamsOnce(t *testing.T) {
	r := Request{Params: []byte(`{"name":"a"}`)}
	want := func(name string) {
		t.Helper()
		if p, err := r.ReadParams(); err != nil || p.Name != name {
			t.Errorf("%s: %q, %v", r.Params, p.Name, err)
		}
	}
	want("a")
	r.Params[9] = 'z' // nobody does this; it shows that the bytes were not read again
	want("a")
	r.Params = []byte(`{"name":"b"}`)
	want("b")
	r.Params = nil
	want("")
	r.Params = []byte(`{"name":"abc"}`)
	want("abc")
	r.Params = []byte(`{"name":"a","name":"b"}`)
	if _, err := r.ReadParams(); err == nil {
		t.Error("an ambiguous name was read")
	}
}

// TestParamsHaveNoRoom: who appends to a field that was read, such as a hook, does not
// overwrite the params that are sent.
func TestParamsHaveNoRoom(t *testing.T) {
	const text = `{"arguments":{},"_meta":{},"cursor":"c","name":"safe"}`
	r := Request{Params: []byte(text)}
	p, err := r.ReadParams()
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range [][]byte{p.Arguments, p.Meta, p.Cursor} {
		_ = append(field, `,"name":"evil"}`...)
	}
	if string(r.Params) != text {
		t.Errorf("the params are now %s", r.Params)
	}
}
