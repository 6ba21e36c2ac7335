package cli

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

// target is a file that a command is about to change.
type target struct {
	path  string
	layer config.Layer
}

// word names the file in a sentence.
func (t target) word() string {
	switch t.layer {
	case config.LayerProject:
		return "project file"
	case config.LayerFlag:
		return "file"
	}
	return "user file"
}

// target decides which file to change: the one of --config, the project's, or the
// user's own. A project that has none yet gets .mcp.json at the top of its
// repository, or here when this is none.
func (a *factory) target(project bool) (target, error) {
	if a.configFile != "" {
		if project {
			return target{}, usagef("leave one of them out", "--config and --project name two files")
		}
		path := a.configFile
		if !filepath.IsAbs(path) {
			path = filepath.Join(a.io.System.WithDefaults().Workdir, path)
		}
		return target{path, config.LayerFlag}, nil
	}
	cfg, err := config.Load(a.loadOptions())
	if err != nil && len(cfg.Files) == 0 {
		return target{}, err
	}
	if !project {
		return target{cfg.Dirs.UserFile(), config.LayerUser}, nil
	}
	for _, f := range cfg.Files {
		if f.Layer == config.LayerProject {
			return target{f.Path, config.LayerProject}, nil
		}
	}
	path := ""
	for _, w := range cfg.Watch {
		if filepath.Base(w) == ".mcp.json" {
			path = w
		}
	}
	if path == "" {
		return target{}, withHint(errors.New("there is no working directory for a project file"), "leave out --project")
	}
	return target{path, config.LayerProject}, nil
}

// current reads the servers of one file alone.
func (a *factory) current(t target) (*config.Config, error) {
	if _, err := os.Stat(t.path); errors.Is(err, fs.ErrNotExist) {
		return &config.Config{}, nil
	}
	opt := a.loadOptions()
	opt.File = t.path
	return config.Load(opt)
}

// literalSecrets lists what of a server is a credential written out.
func literalSecrets(s config.Server) []string {
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

// refuseSecrets keeps credentials out of files that others will read.
func refuseSecrets(s config.Server, t target) error {
	found := literalSecrets(s)
	if len(found) == 0 {
		return nil
	}
	name := variableName(s.Name, found[0])
	return withHint(
		fmt.Errorf("%s looks like a credential, and %s is shared with everybody who has the project; nothing was written", found[0], filepath.Base(t.path)),
		"export %s=… and write ${env:%s} in its place (in single quotes)\nor leave out --project to keep it in your own file", name, name)
}

// variableName suggests a variable for a value: DOCS_AUTHORIZATION.
func variableName(server, key string) string {
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

// maskedEntry is a server as it stands in a file, for showing.
func maskedEntry(s config.Server) string {
	raw, err := s.Masked().Entry()
	if err != nil {
		return "{}"
	}
	text, err := jsonText(raw)
	if err != nil {
		return "{}"
	}
	return strings.TrimRight(string(text), "\n")
}

// rehearse edits a copy of a file and forgets it.
func rehearse(path string, change func(*edit.Document) error) error {
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
