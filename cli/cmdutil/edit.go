package cmdutil

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/edit"
)

// Target is a file that a command is about to change.
type Target struct {
	Path  string
	Layer config.Layer
}

// Word names the file in a sentence.
func (t Target) Word() string {
	switch t.Layer {
	case config.LayerProject:
		return "project file"
	case config.LayerFlag:
		return "file"
	}
	return "user file"
}

// ChooseTarget decides which file to change: the one of --config, the project's, or the
// user's own. A project that has none yet gets .mcp.json at the top of its
// repository, or here when this is none.
func ChooseTarget(f *Factory, project bool) (Target, error) {
	if f.ConfigFile != "" {
		if project {
			return Target{}, Usagef("leave one of them out", "--config and --project name two files")
		}
		path := f.ConfigFile
		if !filepath.IsAbs(path) {
			path = filepath.Join(f.IO.System.WithDefaults().Workdir, path)
		}
		return Target{path, config.LayerFlag}, nil
	}
	cfg, err := config.Load(f.LoadOptions())
	if err != nil && len(cfg.Files) == 0 {
		return Target{}, err
	}
	if !project {
		return Target{cfg.Dirs.UserFile(), config.LayerUser}, nil
	}
	for _, file := range cfg.Files {
		if file.Layer == config.LayerProject {
			return Target{file.Path, config.LayerProject}, nil
		}
	}
	path := ""
	for _, w := range cfg.Watch {
		if filepath.Base(w) == ".mcp.json" {
			path = w
		}
	}
	if path == "" {
		return Target{}, WithHint(errors.New("there is no working directory for a project file"), "leave out --project")
	}
	return Target{path, config.LayerProject}, nil
}

// ReadTarget reads the servers of one file alone.
func ReadTarget(f *Factory, t Target) (*config.Config, error) {
	if _, err := os.Stat(t.Path); errors.Is(err, fs.ErrNotExist) {
		return &config.Config{}, nil
	}
	opt := f.LoadOptions()
	opt.File = t.Path
	return config.Load(opt)
}

// LiteralSecrets lists what of a server is a credential written out.
func LiteralSecrets(s config.Server) []string {
	_, moved, clean := s.MoveSecrets()
	var out []string
	for _, m := range moved {
		_, key, _ := strings.Cut(m.Name, "/")
		out = append(out, key)
	}
	if !clean {
		out = append(out, "an embedded value")
	}
	return out
}

// RefuseSecrets keeps credentials out of files that others will read.
func RefuseSecrets(s config.Server, t Target) error {
	found := LiteralSecrets(s)
	if len(found) == 0 {
		return nil
	}
	name := VariableName(s.Name, found[0])
	return WithHint(
		fmt.Errorf("%s looks like a credential, and %s is shared with everybody who has the project; nothing was written", found[0], filepath.Base(t.Path)),
		"export %s=… and write ${env:%s} in its place (in single quotes)\nor leave out --project to keep it in your own file", name, name)
}

// VariableName suggests a variable for a value: DOCS_AUTHORIZATION.
func VariableName(server, key string) string {
	if key == "an embedded value" || key == "value" {
		key = "token"
	}
	name := strings.ToUpper(server + "_" + key)
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.TrimLeft(name, "0123456789"))
}

// MaskedEntry is a server as it stands in a file, for showing.
func MaskedEntry(s config.Server) string {
	raw, err := s.Masked().Entry()
	if err != nil {
		return "{}"
	}
	text, err := JSONText(raw)
	if err != nil {
		return "{}"
	}
	return strings.TrimRight(string(text), "\n")
}

// Rehearse edits a copy of a file and forgets it.
func Rehearse(path string, change func(*edit.Document) error) error {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	doc, err := edit.Parse(path, text)
	if err != nil {
		return err
	}
	return change(doc)
}
