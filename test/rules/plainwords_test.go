package rules

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/test/need"
)

// plain lists expressions that the glossary of CONTRIBUTING.md replaces.
var plain = []struct {
	say  string
	find *regexp.Regexp
}{
	{"again, or re-", regexp.MustCompile(`(?i)\banew\b`)},
	{"permanently, or forever", regexp.MustCompile(`(?i)\bfor ever\b`)},
	{"the actor: a client, a user, an operator", regexp.MustCompile(`(?i)\bwhoever\b`)},
	{"authenticate, or accept", regexp.MustCompile(`(?i)\b(let|lets|letting) in\b`)},
	{"connect, or authentication", regexp.MustCompile(`(?i)\b(may|to|not|can|who) come in\b`)},
	{"in progress, or in-flight", regexp.MustCompile(`(?i)\bunder way\b`)},
	{"instances, replicas, or usher processes", regexp.MustCompile(`(?i)\bushers\b`)},
	{"legacy protocol, or stateless protocol", regexp.MustCompile(`(?i)\b(older|modern|legacy|either|both|every|any) eras?\b`)},
	{"audit log", regexp.MustCompile(`(?i)\baudit trail\b`)},
	{"login required, or user action required", regexp.MustCompile(`(?i)\bwants a (login|person)\b`)},
	{"is not a, or invalid", regexp.MustCompile(`(?i)\b(\w+) (?:is|are) no (\w+)`)},
}

// legitimate reports whether "is no" is not used as "is not a": there is no X, is no longer.
func legitimate(before, next string) bool {
	switch strings.ToLower(next) {
	case "longer", "more", "different", "other", "such", "better", "worse":
		return true
	}
	return strings.EqualFold(before, "there")
}

// jargon finds what a text should say otherwise.
func jargon(text string) []string {
	text = strings.Join(strings.Fields(text), " ")
	var found []string
	for _, p := range plain {
		for _, m := range p.find.FindAllStringSubmatch(text, -1) {
			if len(m) == 3 && legitimate(m[1], m[2]) {
				continue
			}
			found = append(found, fmt.Sprintf("%q: say %s", m[0], p.say))
		}
	}
	return found
}

var (
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	comment = regexp.MustCompile(`(?s)<!--.*?-->`)
	span    = regexp.MustCompile("`[^`]*`")
)

// prose is a document without blocks of code, comments and code spans.
func prose(text string) string {
	for _, re := range []*regexp.Regexp{fenced, comment, span} {
		text = re.ReplaceAllString(text, "x")
	}
	return text
}

func TestDocumentsUsePlainWords(t *testing.T) {
	root, err := need.Root()
	if err != nil {
		t.Fatal(err)
	}
	names, err := tracked("README.md", "CONTRIBUTING.md", "AGENTS.md", "ARCHITECTURE.md", "deploy/README.md", "docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(names) < 10 {
		t.Fatalf("found only %d documents", len(names))
	}
	for _, name := range names {
		if name == "docs/cli.md" {
			continue // made of the help texts, which TestCodeUsesPlainWords reads
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, paragraph := range strings.Split(prose(string(text)), "\n\n") {
			for _, finding := range jargon(paragraph) {
				t.Errorf("%s: %s", name, finding)
			}
		}
	}
}

// spoken finds such words in what users and embedding programs read of a file: strings
// of several words, the package comment, and comments of exported names.
func spoken(s source) []string {
	if s.isTest() || s.within("test", "tools") {
		return nil
	}
	var found []string
	report := func(n ast.Node, text string) {
		for _, finding := range jargon(text) {
			found = append(found, fmt.Sprintf("line %d: %s", s.line(n), finding))
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			// Tags of structs are not for people.
			return n.Tag == nil
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil && strings.Contains(text, " ") {
				report(n, text)
			}
		}
		return true
	})
	for _, c := range exportedComments(s.file) {
		report(c, c.Text())
	}
	return found
}

// exportedComments returns the package comment and the comments of exported names.
func exportedComments(f *ast.File) []*ast.CommentGroup {
	out := []*ast.CommentGroup{f.Doc}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && receiverExported(d) {
				out = append(out, d.Doc)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				out = append(out, specComments(d, spec)...)
			}
		}
	}
	return slices.DeleteFunc(out, func(c *ast.CommentGroup) bool { return c == nil })
}

func specComments(d *ast.GenDecl, spec ast.Spec) []*ast.CommentGroup {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if !spec.Name.IsExported() {
			return nil
		}
		out := []*ast.CommentGroup{d.Doc, spec.Doc, spec.Comment}
		if st, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range st.Fields.List {
				out = append(out, field.Doc, field.Comment)
			}
		}
		return out
	case *ast.ValueSpec:
		if slices.ContainsFunc(spec.Names, (*ast.Ident).IsExported) {
			return []*ast.CommentGroup{d.Doc, spec.Doc, spec.Comment}
		}
	}
	return nil
}

func TestCodeUsesPlainWords(t *testing.T) {
	for _, s := range everySource(t) {
		for _, finding := range spoken(s) {
			t.Errorf("%s: %s", s.path, finding)
		}
	}
}

func TestPlainWordsFind(t *testing.T) {
	for text, want := range map[string]int{
		"it is connected anew":                  1,
		"whoever reads this":                    1,
		"calls under\nway":                      1,
		"all ushers of one store":               1,
		"usher's store":                         0,
		"foo is no URL":                         1,
		"these are no JSON":                     1,
		"there is no connection":                0,
		"it is no longer configured":            0,
		"who may come in":                       1,
		"the lines come in order":               0,
		"the audit trail":                       1,
		"connections are accepted again and go": 0,
	} {
		if got := jargon(text); len(got) != want {
			t.Errorf("%q: findings %q, want %d", text, got, want)
		}
	}
	if got := prose("a\n```\nanew\n```\n<!-- setup\nanew\n-->\n`anew` b"); strings.Contains(got, "anew") {
		t.Errorf("prose keeps code: %q", got)
	}
	try(t, spoken, []probe{
		{"string", "p/a.go", "package p\nvar x = \"a call under way\"\n", 1},
		{"key", "p/a.go", "package p\nvar x = \"ushers\"\n", 0},
		{"tag", "p/a.go", "package p\ntype t struct{ X int `json:\"ushers anew\"` }\n", 0},
		{"exported comment", "p/a.go", "package p\n// F connects anew.\nfunc F() {}\n", 1},
		{"field of an exported type", "p/a.go", "package p\n// T is.\ntype T struct {\n\t// X is made anew.\n\tX int\n}\n", 1},
		{"unexported comment", "p/a.go", "package p\n// f connects anew.\nfunc f() {}\n", 0},
		{"package comment", "p/a.go", "// Package p is for whoever wants it.\npackage p\n", 1},
		{"test", "p/a_test.go", "package p\nvar x = \"a call under way\"\n", 0},
	})
}
