package docs

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/usher-mcp/usher/cli"
)

// Command is what the help of one command says.
type Command struct {
	Path     []string // usher, pins, accept
	Short    string   // as the parent lists it
	About    string   // what stands above the usage line
	Usage    string
	Aliases  string
	Examples []string
	Flags    []string
	Global   []string
	Group    string // the heading under which the parent lists it
	Children []Command
}

// Name is the command as it is typed.
func (c Command) Name() string { return strings.Join(c.Path, " ") }

// HasFlag reports whether the command itself has the flag.
func (c Command) HasFlag(name string) bool {
	for _, f := range c.Flags {
		for _, w := range strings.Fields(f) {
			if strings.TrimSuffix(w, ",") == name {
				return true
			}
		}
	}
	return false
}

// All yields the command and everything below it, depth first.
func (c Command) All() []Command {
	out := []Command{c}
	for _, k := range c.Children {
		out = append(out, k.All()...)
	}
	return out
}

// Commands asks the program for the help of every command that it shows.
func Commands(ctx context.Context) (Command, error) {
	return readCommand(ctx, []string{"usher"}, "", "")
}

func readCommand(ctx context.Context, path []string, group, short string) (Command, error) {
	var out, errw bytes.Buffer
	if code := cli.Run(ctx, append(path[1:len(path):len(path)], "--help"), cli.IO{In: strings.NewReader(""), Out: &out, Err: &errw, Width: 80}); code != 0 {
		return Command{}, fmt.Errorf("%s --help ended with code %d: %s", strings.Join(path, " "), code, &errw)
	}
	c, lists := parseHelp(path, out.String())
	c.Group, c.Short = group, short
	for _, l := range lists {
		for _, line := range l.lines {
			name, about, _ := strings.Cut(strings.TrimSpace(line), " ")
			if name == "help" || name == "" {
				continue
			}
			child, err := readCommand(ctx, append(path[:len(path):len(path)], name), l.title, strings.TrimSpace(about))
			if err != nil {
				return Command{}, err
			}
			if len(path) > 1 && len(child.Examples) == 0 {
				child.Examples = examplesOf(child.Name(), c.Examples)
			}
			c.Children = append(c.Children, child)
		}
	}
	return c, nil
}

// examplesOf picks the examples of a parent that show a command.
func examplesOf(name string, examples []string) []string {
	var out []string
	for _, e := range examples {
		if strings.Contains(e+" ", name+" ") {
			out = append(out, e)
		}
	}
	return out
}

// section is a heading of a help text and the lines below it.
type section struct {
	title string
	lines []string
}

// parseHelp takes a help text apart. The sections that it does not know list
// commands.
func parseHelp(path []string, text string) (Command, []section) {
	about, rest, _ := strings.Cut(text, "\nUsage:\n")
	c := Command{Path: path, About: strings.TrimSpace(about)}
	var lists []section
	for _, s := range sections("Usage:\n" + rest) {
		switch s.title {
		case "Usage":
			c.Usage = strings.TrimSpace(s.lines[0])
		case "Aliases":
			c.Aliases = strings.TrimSpace(strings.Join(s.lines, " "))
		case "Examples":
			c.Examples = s.lines
		case "Flags":
			c.Flags = s.lines
		case "Global Flags":
			c.Global = s.lines
		default:
			lists = append(lists, s)
		}
	}
	return c, lists
}

// sections splits at lines that begin at the margin and end with a colon; other
// text at the margin belongs to nothing.
func sections(text string) []section {
	var out []section
	inside := false
	for _, line := range strings.Split(text, "\n") {
		title, isTitle := strings.CutSuffix(line, ":")
		switch {
		case isTitle && !strings.HasPrefix(line, " "):
			out = append(out, section{title: title})
			inside = true
		case line != "" && !strings.HasPrefix(line, " "):
			inside = false
		case inside && line != "":
			s := &out[len(out)-1]
			s.lines = append(s.lines, line)
		}
	}
	return out
}
