// Package syntax reads and edits files of other MCP clients in the three formats that
// they use: JSON with comments, TOML and YAML.
//
//	tree, err := syntax.Parse(path, text, syntax.TOML)
//	text, err = syntax.Edit(location, path, text, names, func(s syntax.Sheet) error {
//		return s.Put("usher", entry)
//	})
//
// [Edit] splices text into text and then parses both: if anything but the named entries
// means something else than before, the edit is refused. Comments, order and layout of
// the rest stay. Size, depth and aliases of a file are limited, and errors never quote
// its text.
//
// It does not know the clients: which file, which keys and what an entry means are
// config/clients'.
package syntax
