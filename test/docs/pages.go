package docs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/usher-mcp/usher/config/clients"
)

// Pages makes the generated pages and parts of pages of the checkout at root. The
// keys are paths below root.
func Pages(ctx context.Context, root string) (map[string]string, error) {
	commands, err := Commands(ctx)
	if err != nil {
		return nil, err
	}
	used, err := mentions(root)
	if err != nil {
		return nil, err
	}
	src, err := readSources(root, "config")
	if err != nil {
		return nil, err
	}
	settings, err := settingsTable(src, used)
	if err != nil {
		return nil, err
	}
	servers, err := serverTable(src, used)
	if err != nil {
		return nil, err
	}
	limits, err := boundsTable(root)
	if err != nil {
		return nil, err
	}
	untrusted, err := limitsTable()
	if err != nil {
		return nil, err
	}
	figures, err := figuresTable(root)
	if err != nil {
		return nil, err
	}
	measured, err := readmeTable(root)
	if err != nil {
		return nil, err
	}
	program, err := os.ReadFile(filepath.Join(root, "test", "docs", "embed", "main.go"))
	if err != nil {
		return nil, err
	}
	pages := map[string]string{"docs/cli.md": cliPage(commands)}
	if err := fillExamples(root, pages); err != nil {
		return nil, err
	}
	for _, part := range []struct{ page, name, text string }{
		{"README.md", "figures", measured},
		{"docs/configuration.md", "settings", settings},
		{"docs/configuration.md", "server options", servers},
		{"docs/configuration.md", "clients", clientsTable()},
		{"docs/security.md", "bounds", limits},
		{"docs/security.md", "limits", untrusted},
		{"docs/promises.md", "figures", figures},
		{"docs/embedding.md", "program", "```go\n" + string(program) + "```\n"},
	} {
		if err := fillPage(root, pages, part.page, part.name, part.text); err != nil {
			return nil, err
		}
	}
	return pages, nil
}

func fillPage(root string, pages map[string]string, page, name, text string) error {
	if _, read := pages[page]; !read {
		old, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
		if err != nil {
			return err
		}
		pages[page] = string(old)
	}
	filled, err := fill(pages[page], name, text)
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	pages[page] = filled
	return nil
}

// clientsTable lists the clients whose files are read and written.
func clientsTable() string {
	var rows [][]string
	for _, c := range clients.List() {
		rows = append(rows, []string{code(c.Name), c.Title})
	}
	return table([]string{"name", "client"}, rows)
}
