package cmdutil

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/config"
)

func TestVariableName(t *testing.T) {
	for _, tt := range [][3]string{
		{"docs", "Authorization", "DOCS_AUTHORIZATION"},
		{"git-hub", "X-Api-Key", "GIT_HUB_X_API_KEY"},
		{"9lives", "value", "LIVES_TOKEN"},
		{"ünï", "k", "_N__K"},
	} {
		if got := VariableName(tt[0], tt[1]); got != tt[2] {
			t.Errorf("variableName(%q, %q) = %q, want %q", tt[0], tt[1], got, tt[2])
		}
	}
}

func TestWord(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "https://x.example/a?b=c": "https://x.example/a?b=c", "${env:X}": "${env:X}", "": `""`,
		"two words": `"two words"`, "a;b": `"a;b"`, "a\nb": `"a\nb"`, "****": "****",
	} {
		if got := quoteWord(in); got != want {
			t.Errorf("word(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestShortPaths(t *testing.T) {
	home, work := filepath.FromSlash("/h/me"), filepath.FromSlash("/h/me/project")
	f := &Factory{IO: IO{System: config.System{Home: home, Workdir: work}}}
	for in, want := range map[string]string{
		"/h/me/project/.mcp.json":      ".mcp.json",
		"/h/me/project/sub/.mcp.json":  "sub/.mcp.json",
		"/h/me/.config/usher/mcp.json": "~/.config/usher/mcp.json",
		"/h/me/projects/x.json":        "~/projects/x.json",
		"/etc/x.json":                  "/etc/x.json",
		"x.json":                       "x.json",
		"environment variable X":       "environment variable X",
	} {
		if got := filepath.ToSlash(f.Short(filepath.FromSlash(in))); got != want {
			t.Errorf("short(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestFlatten(t *testing.T) {
	one, two, three := errors.New("1"), errors.New("2"), errors.New("3")
	var got []string
	for _, err := range Flatten(errors.Join(one, errors.Join(two, three))) {
		got = append(got, err.Error())
	}
	if diff := cmp.Diff([]string{"1", "2", "3"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if Flatten(nil) != nil {
		t.Error("no error is taken apart into some")
	}
}
