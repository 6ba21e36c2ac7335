// Package edit changes configuration files and leaves every byte that it does not have
// to change as it was: comments, order and indentation included.
//
//	changed, err := edit.Update(path, func(d *edit.Document) error {
//		return d.Add(server, false)
//	})
//
// [Update] reads, edits, parses the result again and writes it in one step, so that a
// crash leaves the old or the new text; a file that does not parse is left alone, and a
// file that another program changes meanwhile is read again ([ErrRaced]).
//
// Edits are splices of text (splice.go); layout.go finds out how the file is indented.
// The package does not decide what is written: the definition of a server is config's.
package edit
