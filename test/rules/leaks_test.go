package rules

import (
	"go/ast"
	"testing"
)

// checksLeaks reports whether a file has a TestMain that asks goleak.
func checksLeaks(s source) bool {
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != "TestMain" {
			continue
		}
		asked := false
		ast.Inspect(f, func(n ast.Node) bool {
			on, _ := called(n)
			asked = asked || on == "goleak"
			return true
		})
		return asked
	}
	return false
}

// TestLeaksAreLookedFor wants goleak in the TestMain of every package that has
// tests.
func TestLeaksAreLookedFor(t *testing.T) {
	tested, checked := map[string]bool{}, map[string]bool{}
	for _, s := range everySource(t) {
		if s.isTest() {
			tested[s.room()] = true
			checked[s.room()] = checked[s.room()] || checksLeaks(s)
		}
	}
	for room := range tested {
		if !checked[room] {
			t.Errorf("%s: its tests have no TestMain with goleak.VerifyTestMain", room)
		}
	}
}

func TestChecksLeaksFinds(t *testing.T) {
	for text, want := range map[string]bool{
		"package p\nfunc TestMain(m *testing.M) { goleak.VerifyTestMain(m) }\n":                 true,
		"package p\nfunc TestMain(m *testing.M) { os.Exit(m.Run()) }\n":                         false,
		"package p\nfunc TestX(t *testing.T) { goleak.VerifyNone(t) }\n":                        false,
		"package p\nfunc TestMain(m *testing.M) { testscript.Main(wrap(m, goleak.Find()), n) }": true,
	} {
		s, err := parse("p/a_test.go", text)
		if err != nil {
			t.Fatal(err)
		}
		if got := checksLeaks(s); got != want {
			t.Errorf("checksLeaks = %v, want %v for\n%s", got, want, text)
		}
	}
}
