package pins

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/internal/lookalike"
)

func TestCompareReads(t *testing.T) {
	for _, tt := range []struct {
		name, old, new string
		want           []string
	}{
		{"nothing", `{"a":1}`, `{ "a": 1 }`, nil},
		{"description", `{"description":"a"}`, `{"description":"b"}`, []string{"description changed: a → b"}},
		{"added", `{}`, `{"title":"x"}`, []string{"title added: x"}},
		{"removed", `{"title":"x"}`, `{}`, []string{"title removed: x"}},
		{
			"parameters",
			`{"inputSchema":{"properties":{"a":{"type":"string"},"b":{"type":"string","description":"x"}},"required":["a"]}}`,
			`{"inputSchema":{"properties":{"b":{"type":"number","description":"x"},"c":{"type":"null"}},"required":["b"]}}`,
			[]string{
				`parameter a removed: {"type":"string"}`, `parameter b: type changed: string → number`,
				`parameter c added: {"type":"null"}`, `required parameter removed: a`, `required parameter added: b`,
			},
		},
		{
			"nested parameter", `{"inputSchema":{"properties":{"a":{"properties":{"b":{"default":1}}}}}}`,
			`{"inputSchema":{"properties":{"a":{"properties":{"b":{"default":2}}}}}}`,
			[]string{"parameter a.b: default changed: 1 → 2"},
		},
		{
			"result", `{"outputSchema":{"properties":{"a":{"type":"string"}}}}`, `{"outputSchema":{"properties":{"a":{"type":"null"}}}}`,
			[]string{"result member a: type changed: string → null"},
		},
		{
			"schema itself", `{"inputSchema":{"additionalProperties":false}}`, `{"inputSchema":{"additionalProperties":true}}`,
			[]string{"inputSchema.additionalProperties changed: false → true"},
		},
		{"list", `{"icons":[{"src":"a"}]}`, `{"icons":[{"src":"b"},{"src":"c"}]}`, []string{"icons[0].src changed: a → b", `icons[1] added: {"src":"c"}`}},
		{"enum", `{"inputSchema":{"properties":{"a":{"enum":["x","y"]}}}}`, `{"inputSchema":{"properties":{"a":{"enum":["x","z"]}}}}`, []string{"parameter a: enum removed: y", "parameter a: enum added: z"}},
		{"enum order", `{"inputSchema":{"properties":{"a":{"enum":["x","y"]}}}}`, `{"inputSchema":{"properties":{"a":{"enum":["y","x"]}}}}`, []string{`parameter a: enum changed: ["x","y"] → ["y","x"]`}},
		{"type of value", `{"title":"1"}`, `{"title":["1"]}`, []string{`title changed: 1 → ["1"]`}},
		{"invisible", `{"description":"ab"}`, "{\"description\":\"a\u200bb\"}", []string{`description changed: ab → a\u{200b}b`}},
		{"look-alike", `{"description":"pay"}`, `{"description":"pаy"}`, []string{`description changed: pay → p\u{0430}y`}},
		{"terminal escape", `{"description":"a"}`, `{"description":"\u001b[2J"}`, []string{`description changed: a → \u{001b}[2J`}},
		{
			"lines", `{"description":"one\ntwo\nthree\nfour\nfive\nsix\nseven"}`, `{"description":"one\ntwo\nthree\nfour\n5\nsix\nseven\neight"}`,
			[]string{"description changed:\n    three\n    four\n  - five\n  + 5\n    six\n    seven\n  + eight"},
		},
		{
			"long line", `{"description":"` + strings.Repeat("word ", 20) + `"}`, `{"description":"` + strings.Repeat("word ", 20) + `and more"}`,
			[]string{"description changed:\n  - " + strings.Repeat("word ", 20) + "\n  + " + strings.Repeat("word ", 20) + "and more"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, c := range Compare([]byte(tt.old), []byte(tt.new)) {
				got = append(got, c.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestDiffLinesIsBounded(t *testing.T) {
	long := func(s string) []string { return strings.Split(strings.Repeat(s+"\n", 3000), "\n") }
	if n := len(diffLines(long("a"), long("b"))); n < 6000 {
		t.Errorf("%d lines", n)
	}
}

// FuzzCompare: what differs in canonical form has a change, what does not has
// none, and nothing invisible reaches the reader.
func FuzzCompare(f *testing.F) {
	f.Add([]byte(mutant), []byte(strings.Replace(mutant, "path", "file", 1)))
	f.Add([]byte(`{"inputSchema":{"required":["b","a"]}}`), []byte(`{"inputSchema":{"required":["a","b"]}}`))
	f.Add([]byte(`{"a":[1,[2]]}`), []byte(`{"a":[1,[3],4]}`))
	f.Add([]byte(`[]`), []byte(`null`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		da, db := NewDefinition(a), NewDefinition(b)
		da.canonicalize()
		db.canonicalize()
		if da.err != nil || db.err != nil {
			return
		}
		changes := Compare(a, b)
		if (da.hash == db.hash) != (len(changes) == 0) {
			t.Fatalf("%s and %s: hashes equal %v, changes %v", a, b, da.hash == db.hash, changes)
		}
		for _, c := range changes {
			if strings.ContainsFunc(c.String(), lookalike.Hidden) {
				t.Fatalf("%q shows what is hidden", c)
			}
		}
		if da.hash != db.hash && len(changedMembers(da.form, db.form)) == 0 {
			t.Fatal("no member is named")
		}
	})
}

func TestLockFile(t *testing.T) {
	tools := map[string][][]byte{
		"b": {[]byte(described("z", "last")), []byte(described("a", "first <&>"))},
		"a": {[]byte(mutant)},
	}
	l, err := NewLock(tools)
	if err != nil {
		t.Fatal(err)
	}
	text := l.Encode()
	if !json.Valid(text) || !bytes.Equal(text, l.Encode()) {
		t.Fatalf("%s", text)
	}
	var lines []string
	for _, line := range strings.Split(string(text), "\n") {
		lines = append(lines, line[:min(22, len(line))])
	}
	want := []string{"{", `  "version": 1,`, `  "servers": {`, `    "a": {`, `      "read_file": {"s`, `    },`, `    "b": {`, `      "a": {"sha256": `, `      "z": {"sha256": `, "    }", "  }", "}", ""}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	path := filepath.Join(t.TempDir(), LockName)
	if err := l.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	back, err := ReadLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if f := back.Verify(tools); len(f) != 0 {
		t.Errorf("findings %v", f)
	}
	if !bytes.Equal(back.Encode(), text) {
		t.Error("a file that was read is written differently")
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("files left behind: %v", entries)
	}
}

func TestLockFindings(t *testing.T) {
	l, err := NewLock(map[string][][]byte{"s": {[]byte(described("a", "x")), []byte(described("b", "x")), []byte(described("c", "x\u200b"))}})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(l.Verify(map[string][][]byte{"s": {[]byte(described("a", "y")), []byte(described("c", "x\u200b")), []byte(described("d", "x"))}}))
	want := "[s/c: hidden: invisible characters in description s/a: changed: description s/d: new: it is not in the lock s/b: removed: the server does not list it any more]"
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	// Somebody edits the text and forgets the hash, or the other way round.
	forged := bytes.Replace(l.Encode(), []byte(`"description":"x"`), []byte(`"description":"y"`), 1)
	fl, err := ParseLock(forged)
	if err != nil {
		t.Fatal(err)
	}
	if f := fl.Verify(nil); len(f) != 2 || f[0].Kind != FindingDamaged {
		t.Errorf("findings %v", f)
	}
}

func TestReadLockRefuses(t *testing.T) {
	for _, text := range []string{``, `[]`, `{"version":2}`, `{"version":1,"version":1}`, `{"version":1,"servers":{"s":{"a":{},"a":{}}}}`, `{"version":1,"servers":[]}`} {
		if _, err := ParseLock([]byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	if _, err := ReadLock(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func FuzzParseLock(f *testing.F) {
	l, err := NewLock(map[string][][]byte{"s": {[]byte(mutant)}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(l.Encode())
	f.Add([]byte(`{"version":1,"servers":{"s":{"a":{"sha256":"x","definition":{}}}}}`))
	f.Add([]byte(`{"version":1,"servers":{"s":null}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := ParseLock(data)
		if err != nil {
			return
		}
		l.Verify(nil)
		again, err := ParseLock(l.Encode())
		if err != nil {
			t.Fatalf("%s: what was written cannot be read: %v\n%s", data, err, l.Encode())
		}
		if !bytes.Equal(again.Encode(), l.Encode()) {
			t.Fatal("writing is not stable")
		}
	})
}
