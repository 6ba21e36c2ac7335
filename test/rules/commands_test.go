package rules

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"testing"
)

// usherCommand is a command line of usher in a text.
var usherCommand = regexp.MustCompile(`\busher (add|allow|approve|call|deny|doctor|import|init|link|list|login|logout|logs|pins|reload|serve|status|stop|store|tools)\b`)

// mayAdvise are the rooms that tell a person what to run, and those that run usher.
// auth and surface have results of their own for a person.
var mayAdvise = []string{"cli", "console", "cmd", "internal/advice", "status", "internal/app", "internal/torture", "bench", "test", "tools", "auth", "surface"}

// stillAdvise are files that hold command lines of usher and should not.
var stillAdvise = []string{
	"config/resolve.go", "config/read.go",
	"vault/keys/place.go",
}

// commandLines finds commands of usher where an embedding program would show them as its
// own. Errors carry data; internal/advice adds the command.
func commandLines(s source) []string {
	if s.isTest() || s.within(mayAdvise...) || slices.Contains(stillAdvise, s.path) {
		return nil
	}
	var found []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && usherCommand.MatchString(lit.Value) {
			found = append(found, fmt.Sprintf("line %d: %s names a command of usher; errors carry data, see internal/advice", s.line(n), lit.Value))
		}
		return true
	})
	return found
}

func TestErrorsNameNoCommands(t *testing.T) { apply(t, commandLines) }

func TestCommandLinesFinds(t *testing.T) {
	try(t, commandLines, []probe{
		{"an error", "host/a.go", "package p\nvar s = \"run: usher reload \" + name\n", 1},
		{"a comment", "host/a.go", "package p\n// usher login does it.\nvar s = 1\n", 0},
		{"a name", "host/a.go", "package p\nvar s = \"usher loginname\"\n", 0},
		{"advice", "internal/advice/a.go", "package p\nvar s = \"usher login\"\n", 0},
		{"a test", "host/a_test.go", "package p\nvar s = \"usher login\"\n", 0},
	})
}
