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
