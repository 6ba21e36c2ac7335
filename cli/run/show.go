package run

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

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/internal/jsonx"
)

// showResult shows a tool's answer: text as it is, images and other bytes saved
// and named, structure pretty-printed when nothing else was said. An error of the
// tool goes to standard error.
func showResult(f *cmdutil.Factory, o *callOptions, result []byte) error {
	out := f.IO.Out
	if failed, _ := jsonx.Get(result, "isError"); string(failed) == "true" {
		out = f.IO.Err
		f.Note("usher: %s/%s answered with an error", o.server, cmdutil.Clean(o.tool))
	}
	content, _ := jsonx.Get(result, "content")
	shown := 0
	e := jsonx.Array(content)
	for e.Next() {
		shown++
		if err := showContent(f, out, o, e.Value, shown); err != nil {
			return err
		}
	}
	structured, has := jsonx.Get(result, "structuredContent")
	switch {
	case shown == 0 && has:
		return showJSON(f, out, structured)
	case shown == 0:
		return showJSON(f, out, result)
	}
	return nil
}

func showContent(f *cmdutil.Factory, out io.Writer, o *callOptions, item []byte, n int) error {
	switch kind := jsonx.GetText(item, "type"); kind {
	case "text":
		return showText(f, out, jsonx.GetText(item, "text"))
	case "image", "audio":
		return saveContent(f, o, jsonx.GetText(item, "data"), jsonx.GetText(item, "mimeType"), n)
	case "resource":
		res, _ := jsonx.Get(item, "resource")
		if blob := jsonx.GetText(res, "blob"); blob != "" {
			return saveContent(f, o, blob, jsonx.GetText(res, "mimeType"), n)
		}
		f.Note("resource %s", cmdutil.CleanLine(jsonx.GetText(res, "uri")))
		return showText(f, out, jsonx.GetText(res, "text"))
	case "resource_link":
		_, err := fmt.Fprintf(out, "%s  %s\n", cmdutil.CleanLine(jsonx.GetText(item, "uri")), cmdutil.CleanLine(jsonx.GetText(item, "name")))
		return err
	default:
		f.Note("content of type %q, as JSON:", cmdutil.CleanLine(kind))
		return showJSON(f, out, item)
	}
}

// showText prints a server's words. On a terminal they are made harmless; in a
// pipe they stay what they are.
func showText(f *cmdutil.Factory, out io.Writer, text string) error {
	if f.IO.OutTTY || out == f.IO.Err {
		text = cmdutil.Clean(text)
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err := io.WriteString(out, text)
	return err
}

func showJSON(f *cmdutil.Factory, out io.Writer, raw []byte) error {
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return err
	}
	return showText(f, out, b.String())
}

// saveContent writes bytes to a new file and prints its name. An existing file is
// never overwritten.
func saveContent(f *cmdutil.Factory, o *callOptions, data, mimeType string, n int) error {
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return fmt.Errorf("%s/%s sent content that is not valid base64: %w", o.server, o.tool, err)
	}
	name := fmt.Sprintf("%s-%s-%d", fileWord(o.server), fileWord(o.tool), n)
	for i := 0; ; i++ {
		path := filepath.Join(o.out, name+extension(mimeType))
		if i > 0 {
			path = filepath.Join(o.out, fmt.Sprintf("%s-%d%s", name, i, extension(mimeType)))
		}
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return cmdutil.WithHint(fmt.Errorf("save content: %w", err), "--out DIR saves elsewhere, --json prints it")
		}
		_, err = file.Write(raw)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
		_, err = fmt.Fprintf(f.IO.Out, "saved %s (%s, %d bytes)\n", path, cmdutil.CleanLine(mimeType), len(raw))
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
