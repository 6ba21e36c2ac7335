package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"os"
	"path/filepath"
	"strings"

	"github.com/usher-mcp/usher/internal/jsonx"
)

// showResult shows a tool's answer: text as it is, images and other bytes saved
// and named, structure pretty-printed when nothing else was said. An error of the
// tool goes to standard error.
func (a *factory) showResult(o callOptions, result []byte) error {
	out := a.io.Out
	if failed, _ := jsonx.Get(result, "isError"); string(failed) == "true" {
		out = a.io.Err
		a.note("usher: %s/%s answered with an error", o.server, clean(o.tool))
	}
	content, _ := jsonx.Get(result, "content")
	shown := 0
	e := jsonx.Array(content)
	for e.Next() {
		shown++
		if err := a.showContent(out, o, e.Value, shown); err != nil {
			return err
		}
	}
	structured, has := jsonx.Get(result, "structuredContent")
	switch {
	case shown == 0 && has:
		return a.showJSON(out, structured)
	case shown == 0:
		return a.showJSON(out, result)
	}
	return nil
}

func (a *factory) showContent(out io.Writer, o callOptions, item []byte, n int) error {
	switch kind := jsonx.GetText(item, "type"); kind {
	case "text":
		return a.showText(out, jsonx.GetText(item, "text"))
	case "image", "audio":
		return a.saveContent(o, jsonx.GetText(item, "data"), jsonx.GetText(item, "mimeType"), n)
	case "resource":
		res, _ := jsonx.Get(item, "resource")
		if blob := jsonx.GetText(res, "blob"); blob != "" {
			return a.saveContent(o, blob, jsonx.GetText(res, "mimeType"), n)
		}
		a.note("resource %s", cleanLine(jsonx.GetText(res, "uri")))
		return a.showText(out, jsonx.GetText(res, "text"))
	case "resource_link":
		_, err := fmt.Fprintf(out, "%s  %s\n", cleanLine(jsonx.GetText(item, "uri")), cleanLine(jsonx.GetText(item, "name")))
		return err
	default:
		a.note("content of type %q, as JSON:", cleanLine(kind))
		return a.showJSON(out, item)
	}
}

// showText prints a server's words. On a terminal they are made harmless; in a
// pipe they stay what they are.
func (a *factory) showText(out io.Writer, text string) error {
	if a.io.OutTTY || out == a.io.Err {
		text = clean(text)
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err := io.WriteString(out, text)
	return err
}

func (a *factory) showJSON(out io.Writer, raw []byte) error {
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return err
	}
	return a.showText(out, b.String())
}

// saveContent writes bytes to a new file and prints its name. An existing file is
// never overwritten.
func (a *factory) saveContent(o callOptions, data, mimeType string, n int) error {
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return fmt.Errorf("%s/%s sent content that is no base64: %w", o.server, o.tool, err)
	}
	name := fmt.Sprintf("%s-%s-%d", fileWord(o.server), fileWord(o.tool), n)
	for i := 0; ; i++ {
		path := filepath.Join(o.out, name+extension(mimeType))
		if i > 0 {
			path = filepath.Join(o.out, fmt.Sprintf("%s-%d%s", name, i, extension(mimeType)))
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return withHint(fmt.Errorf("save content: %w", err), "--out DIR saves elsewhere, --json prints it")
		}
		_, err = f.Write(raw)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.io.Out, "saved %s (%s, %d bytes)\n", path, cleanLine(mimeType), len(raw))
		return err
	}
}

// fileWord keeps a name within one path element.
func fileWord(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, strings.TrimLeft(s, "."))
}

func extension(mimeType string) string {
	switch mimeType {
	case "image/png":
		return ".png"
	case "image/jpeg":
		return ".jpg"
	case "audio/wav", "audio/x-wav":
		return ".wav"
	}
	if ext, err := mime.ExtensionsByType(mimeType); err == nil && len(ext) > 0 {
		return ext[0]
	}
	return ".bin"
}
