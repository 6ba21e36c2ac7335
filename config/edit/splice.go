package edit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/usher-mcp/usher/config/jsonc"
	"github.com/usher-mcp/usher/internal/visible"
)

// Set writes a JSON value at a path of keys, making objects on the way.
func (d *Document) Set(raw json.RawMessage, path ...string) error {
	for n := len(path); n > 0; n-- {
		v, ok := d.value(path[:n]...)
		if !ok {
			continue
		}
		if n == len(path) {
			return d.splice(v.StartOffset, v.EndOffset, d.indented(raw, d.text.lineIndent(v.StartOffset)))
		}
		return d.insert(v, path[n:], raw)
	}
	return d.insert(d.root, path, raw)
}

// Text returns the value at a path of keys as it is written.
func (d *Document) Text(path ...string) (json.RawMessage, bool) {
	v, ok := d.value(path...)
	if !ok {
		return nil, false
	}
	return json.RawMessage(bytes.Clone(d.text[v.StartOffset:v.EndOffset])), true
}

// Empty reports an object at a path of keys that has no members.
func (d *Document) Empty(path ...string) bool {
	obj, ok := d.object(path...)
	return ok && len(obj.Members) == 0
}

// Delete takes the member at a path out. A path that is not there is left.
func (d *Document) Delete(path ...string) error {
	parent, ok := d.value(path[:len(path)-1]...)
	obj, isObject := parent.Value.(*hujson.Object)
	if !ok || !isObject {
		return nil
	}
	for i, m := range obj.Members {
		if jsonc.MemberKey(m) != path[len(path)-1] {
			continue
		}
		prev := parent.StartOffset + 1
		if i > 0 {
			prev = obj.Members[i-1].Value.EndOffset
		}
		return d.cut(prev, i == 0, m.Name.StartOffset, m.Value.EndOffset, i == len(obj.Members)-1)
	}
	return nil
}

func (d *Document) deleteElement(parent hujson.Value, i int) error {
	elements := parent.Value.(*hujson.Array).Elements
	prev := parent.StartOffset + 1
	if i > 0 {
		prev = elements[i-1].EndOffset
	}
	return d.cut(prev, i == 0, elements[i].StartOffset, elements[i].EndOffset, i == len(elements)-1)
}

// insert adds a member to the object parent; of a path longer than one key
// the objects in between are made.
func (d *Document) insert(parent hujson.Value, path []string, raw json.RawMessage) error {
	obj, ok := parent.Value.(*hujson.Object)
	if !ok {
		return d.source().ErrorAt(parent.StartOffset, "cannot add %s here: this must be an object, not %s", visible.Quote(path[0]), jsonc.KindName(parent))
	}
	for n := len(path) - 1; n > 0; n-- {
		raw = json.RawMessage("{" + string(hujson.String(path[n])) + ":" + string(raw) + "}")
	}
	last := -1
	first := -1
	if n := len(obj.Members); n > 0 {
		first, last = obj.Members[0].Name.StartOffset, obj.Members[n-1].Value.EndOffset
	}
	return d.insertAt(parent, first, last, func(indent string) string {
		sep := ": "
		if d.text.compact() {
			sep = ":"
		}
		return string(hujson.String(path[0])) + sep + string(d.indented(raw, indent))
	})
}

// appendString appends to the array at a path, unless it holds s.
func (d *Document) appendString(s string, path ...string) error {
	v, _ := d.value(path...)
	if arr, ok := v.Value.(*hujson.Array); ok {
		for _, e := range arr.Elements {
			if l, ok := jsonc.Literal(e); ok && l.Kind() == '"' && l.String() == s {
				return nil
			}
		}
	}
	return d.appendTo(json.RawMessage(hujson.String(s)), path...)
}

// appendTo appends to the array at a path, which is made if need be.
func (d *Document) appendTo(raw json.RawMessage, path ...string) error {
	v, ok := d.value(path...)
	if !ok {
		return d.Set(json.RawMessage("["+string(raw)+"]"), path...)
	}
	arr, ok := v.Value.(*hujson.Array)
	if !ok {
		return d.source().ErrorAt(v.StartOffset, "%s must be an array", strings.Join(path, "."))
	}
	first, last := -1, -1
	if n := len(arr.Elements); n > 0 {
		first, last = arr.Elements[0].StartOffset, arr.Elements[n-1].EndOffset
	}
	return d.insertAt(v, first, last, func(indent string) string { return string(d.indented(raw, indent)) })
}

// insertAt adds an item at the end of an object or array. first and last are
// the start of its first and the end of its last item, or -1.
func (d *Document) insertAt(parent hujson.Value, first, last int, item func(indent string) string) error {
	closing := parent.EndOffset - 1
	if last < 0 {
		return d.insertFirst(parent, item)
	}
	oneLine := !bytes.ContainsRune(d.text[parent.StartOffset:first], '\n')
	if oneLine {
		at, text := last, ", "+item(d.text.lineIndent(parent.StartOffset))
		if d.text.compact() {
			text = "," + item("")
		}
		if comma := d.text.commaAfter(last); comma >= 0 {
			at, text = comma+1, " "+strings.TrimPrefix(strings.TrimPrefix(text, ","), " ")+","
		}
		return d.splice(at, at, []byte(text))
	}
	indent := d.text.lineIndent(first)
	text := d.text.newline() + indent + item(indent)
	comma := d.text.commaAfter(last)
	if comma < 0 {
		at := d.text.lineEnd(last, closing)
		text := "," + string(d.text[last:at]) + text
		return d.splice(last, at, []byte(text))
	}
	at := d.text.lineEnd(comma+1, closing)
	return d.splice(at, at, []byte(text+","))
}

// insertFirst fills an empty object or array, after any comment in it.
func (d *Document) insertFirst(parent hujson.Value, item func(indent string) string) error {
	open, closing := parent.StartOffset+1, parent.EndOffset-1
	if d.text.compact() {
		return d.splice(closing, closing, []byte(item("")))
	}
	outer := d.text.lineIndent(parent.StartOffset)
	indent := outer + d.unit()
	body := bytes.TrimRight(d.text[open:closing], " \t\r\n")
	text := string(body) + d.text.newline() + indent + item(indent) + d.text.newline() + outer
	return d.splice(open, closing, []byte(text))
}

// cut removes the item in [start, end) of a list. prev is where the item
// before it ends, or the list begins. With the item go its comma, a comment
// behind it on its line and the comment lines directly above it.
func (d *Document) cut(prev int, isFirst bool, start, end int, isLast bool) error {
	comma := d.text.commaAfter(end)
	if comma >= 0 {
		end = comma + 1
	}
	from, stop := d.text.ownComments(prev, start), d.text.sameLineComment(end)
	lineBreak := bytes.IndexByte(d.text[stop:], '\n')
	ownLine := (from == 0 || d.text[from-1] == '\n') && lineBreak >= 0 && len(bytes.TrimSpace(d.text[stop:stop+lineBreak])) == 0
	switch {
	case ownLine:
		stop += lineBreak + 1
	case isLast:
		from, stop = start, end
	default: // on a line with others: take the blank behind it along
		from = start
		for stop = end; stop < len(d.text) && d.text[stop] == ' '; stop++ {
		}
	}
	text := append(bytes.Clone(d.text[:from]), d.text[stop:]...)
	if isLast && !isFirst && comma < 0 {
		text = dropComma(text, prev, from)
	}
	if err := d.set(text); err != nil {
		return fmt.Errorf("edit %s: the result would not parse: %w", d.file, err)
	}
	return nil
}

// dropComma removes the comma behind prev, which has become a trailing one,
// with the blanks between it and upTo.
func dropComma(text []byte, prev, upTo int) []byte {
	at := jsonc.CommaAfter(text, prev)
	switch {
	case at < 0:
		return text
	case at < upTo && len(bytes.TrimRight(text[at+1:upTo], " \t")) == 0:
		return append(text[:at], text[upTo:]...)
	}
	return append(text[:at], text[at+1:]...)
}

// ownComments moves start up over the comment lines that touch the item's
// line, to the beginning of a line, but never onto the line of prev.
func (t sourceText) ownComments(prev, start int) int {
	from := start
	for {
		lineStart := bytes.LastIndexByte(t[:from], '\n') + 1
		if lineStart <= prev || len(bytes.TrimSpace(t[lineStart:from])) > 0 {
			return from
		}
		from = lineStart
		above := bytes.LastIndexByte(t[:from-1], '\n') + 1
		line := t[above : from-1]
		if above <= prev || !isCommentLine(bytes.TrimSpace(line)) {
			return from
		}
		from = above + len(line) - len(bytes.TrimLeft(line, " \t"))
	}
}

func isCommentLine(line []byte) bool {
	return bytes.HasPrefix(line, []byte("//")) ||
		bytes.HasPrefix(line, []byte("/*")) && bytes.HasSuffix(line, []byte("*/"))
}

// lineEnd returns where the line of offset ends, behind a comment on it, but
// not past limit.
func (t sourceText) lineEnd(offset, limit int) int { return min(t.sameLineComment(offset), limit) }

// sameLineComment returns the offset behind blanks and comments that follow
// on the line of offset; just offset when none do.
func (t sourceText) sameLineComment(offset int) int {
	at := offset
	for {
		i := at
		for i < len(t) && (t[i] == ' ' || t[i] == '\t') {
			i++
		}
		rest := t[i:]
		switch {
		case bytes.HasPrefix(rest, []byte("//")):
			if n := bytes.IndexByte(rest, '\n'); n >= 0 {
				return i + len(bytes.TrimRight(rest[:n], "\r"))
			}
			return len(t)
		case bytes.HasPrefix(rest, []byte("/*")):
			n := bytes.Index(rest, []byte("*/"))
			if n < 0 || bytes.ContainsRune(rest[:n], '\n') {
				return at
			}
			at = i + n + 2
		default:
			return at
		}
	}
}

func (t sourceText) commaAfter(offset int) int { return jsonc.CommaAfter(t, offset) }

// splice replaces [from, to) and takes the result if it still parses.
func (d *Document) splice(from, to int, text []byte) error {
	out := append(append(bytes.Clone(d.text[:from]), text...), d.text[to:]...)
	if err := d.set(out); err != nil {
		return fmt.Errorf("edit %s: the result would not parse: %w", d.file, err)
	}
	return nil
}
