package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestDocument: the published page is the one that the published figures make.
func TestDocument(t *testing.T) {
	r, err := read("results.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range pages(r) {
		got, err := os.ReadFile(filepath.Join("..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("docs/%s is not made from bench/results.json; go run ./bench -doc-only (-want +got)\n%s", name, diff)
		}
	}
}

// TestWrite: a part that is measured again replaces its own rows only.
func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.json")
	old := []row{{Part: "calls", Name: "a", Value: 1}, {Part: "meta", Name: "b", Value: 2}}
	if err := write(path, old, true); err != nil {
		t.Fatal(err)
	}
	if err := write(path, []row{{Part: "calls", Name: "c", Value: 3}}, false); err != nil {
		t.Fatal(err)
	}
	r, err := read(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]row{{Part: "calls", Name: "c", Value: 3}, {Part: "meta", Name: "b", Value: 2}}, r.Rows); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"meta"}, r.Quick); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
