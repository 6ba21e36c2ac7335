// Package standin plays the published servers that the documents name, so that
// what they show runs without a network.
//
// It owns the commands npx and uvx as far as the documents use them. It is for
// tests only and refuses packages that it does not know.
package standin

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/internal/jsonx"
)

// Run plays npx or uvx and returns the exit code.
func Run(args []string, in io.Reader, out, errw io.Writer) int {
	var words []string
	for _, a := range args {
		if !strings.HasPrefix(a, "-") {
			words = append(words, a)
		}
	}
	if len(words) == 0 {
		fmt.Fprintln(errw, "which package?")
		return 2
	}
	var tools []fake.Tool
	switch words[0] {
	case "@modelcontextprotocol/server-filesystem":
		tools = files(words[1:])
		fmt.Fprintln(errw, "Secure MCP Filesystem Server running on stdio")
	case "mcp-server-time":
		tools = clock()
	default:
		fmt.Fprintf(errw, "there is no stand-in for %s\n", words[0])
		return 1
	}
	s := fake.New(&fake.Options{Name: filepath.Base(words[0]), Tools: tools})
	defer s.Close()
	if err := s.ServeStdio(context.Background(), in, out); err != nil {
		fmt.Fprintln(errw, err)
		return 1
	}
	return 0
}

const pathSchema = `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`

func files(roots []string) []fake.Tool {
	inside := func(c *fake.Call) (string, error) {
		path := jsonx.GetText(c.Args, "path")
		for _, root := range roots {
			full := path
			if !filepath.IsAbs(full) {
				full = filepath.Join(root, path)
			}
			if rel, err := filepath.Rel(root, full); err == nil && filepath.IsLocal(rel) {
				return full, nil
			}
		}
		return "", fmt.Errorf("access denied - path outside allowed directories: %s", path)
	}
	read := func(_ context.Context, c *fake.Call) ([]byte, error) {
		path, err := inside(c)
		if err != nil {
			return nil, err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("ENOENT: no such file or directory, open '%s'", path)
		}
		return fake.TextResult(string(text)), nil
	}
	list := func(_ context.Context, c *fake.Call) ([]byte, error) {
		path, err := inside(c)
		if err != nil {
			return nil, err
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, err
		}
		var b strings.Builder
		for _, e := range entries {
			fmt.Fprintf(&b, "[FILE] %s\n", e.Name())
		}
		return fake.TextResult(b.String()), nil
	}
	write := func(_ context.Context, c *fake.Call) ([]byte, error) {
		path, err := inside(c)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(jsonx.GetText(c.Args, "content")), 0o600); err != nil {
			return nil, err
		}
		return fake.TextResult("Successfully wrote to " + path), nil
	}
	return []fake.Tool{
		tool("read_text_file", "Read the complete contents of a file as text.", pathSchema, `{"readOnlyHint":true}`, read),
		tool("list_directory", "List all files and directories in a path.", pathSchema, `{"readOnlyHint":true}`, list),
		tool("write_file", "Create a file or overwrite one with new content.",
			`{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}`,
			`{"readOnlyHint":false,"destructiveHint":true}`, write),
	}
}

func clock() []fake.Tool {
	now := func(context.Context, *fake.Call) ([]byte, error) { return fake.TextResult("2026-07-28T12:00:00Z"), nil }
	return []fake.Tool{tool("get_current_time", "Get the current time in a time zone.",
		`{"type":"object","properties":{"timezone":{"type":"string"}},"required":["timezone"]}`, `{"readOnlyHint":true}`, now)}
}

func tool(name, about, schema, annotations string, handle fake.Handler) fake.Tool {
	return fake.Tool{Handle: handle, Def: fmt.Appendf(nil, `{"name":%s,"description":%s,"inputSchema":%s,"annotations":%s}`,
		jsonx.Quote(name), jsonx.Quote(about), schema, annotations)}
}
