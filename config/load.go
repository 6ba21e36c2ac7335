package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/usher-mcp/usher/config/jsonc"
	"github.com/usher-mcp/usher/config/template"
	"github.com/usher-mcp/usher/internal/visible"
)

// LoadOptions says what to load. The zero value loads what the usher command
// would load here.
type LoadOptions struct {
	System
	// File, the --config flag, replaces the user and project files, except for the deny
	// rules of the user file.
	File string
	// NoProject leaves project files out.
	NoProject bool
	// Overrides are settings from flags, by path ("bulk.concurrency"). They
	// win over the environment, which wins over files. Deny rules add up.
	Overrides map[string]string
}

// Config is what was loaded. It is never changed after Load.
type Config struct {
	Servers  []Server // sorted by name; broken ones included, see Server.Problem
	Inputs   []Input  // what ${input:ID} may ask for
	Usher    Settings
	Files    []File // those that exist, in the order in which later ones win
	Warnings []jsonc.Warning
	Dirs     Dirs
	// Watch lists the paths whose appearance or change calls for a new Load.
	Watch []string
}

// File is one file that was found.
type File struct {
	Path    string
	Layer   Layer
	Servers int
	// Err is why nothing of the file is used, an *Error where it has a place.
	Err error
}

// Input is a question that ${input:ID} stands for.
type Input struct {
	ID          string
	Description string
	Password    bool
	Options     []string
	Default     string
}

// Load reads the files that apply and merges them: for each server name the
// last layer wins as a whole. It always returns a Config; the error is non-nil
// only when nothing can be used: the home directory is unknown, an override
// makes no sense, or there are files and none of them is usable.
func Load(opt LoadOptions) (*Config, error) {
	sys := opt.System.WithDefaults()
	l := &loader{cfg: &Config{Usher: DefaultSettings()}, servers: map[string]Server{}}
	dirs, err := FindDirs(sys)
	if err != nil && opt.File == "" {
		return l.cfg, err
	}
	l.cfg.Dirs = dirs
	l.files(opt, sys)
	l.environment(sys)
	for _, path := range slices.Sorted(maps.Keys(opt.Overrides)) {
		raised, err := l.cfg.Usher.override(path, opt.Overrides[path], Origin{File: "flag " + path})
		if err != nil {
			return l.cfg, fmt.Errorf("set %s: %w", path, err)
		}
		l.warn(raised)
	}
	l.finish()
	return l.cfg, l.unusable()
}

// Parse reads the text of one file, without looking at any other, at the
// environment or at permissions.
func Parse(file string, text []byte, layer Layer) (*Config, error) {
	l := &loader{cfg: &Config{Usher: DefaultSettings()}, servers: map[string]Server{}}
	n, err := l.decode(&jsonc.Source{File: file, Text: bytes.TrimPrefix(text, []byte(jsonc.BOM))}, layer)
	l.cfg.Files = []File{{Path: file, Layer: layer, Servers: n, Err: err}}
	l.finish()
	return l.cfg, err
}

type loader struct {
	cfg     *Config
	servers map[string]Server
}

// finish puts the servers in order and names settings that have no effect.
func (l *loader) finish() {
	for _, path := range l.cfg.Usher.unused() {
		l.warn(fmt.Sprintf("%s has no effect while gateway.auth.mode is %s", path, l.cfg.Usher.Gateway.Auth.Mode))
	}
	for _, s := range l.servers {
		l.cfg.Servers = append(l.cfg.Servers, s)
	}
	slices.SortFunc(l.cfg.Servers, func(a, b Server) int { return cmp.Compare(a.Name, b.Name) })
}

func (l *loader) files(opt LoadOptions, sys System) {
	if opt.File != "" {
		path := opt.File
		if !filepath.IsAbs(path) && sys.Workdir != "" {
			path = filepath.Join(sys.Workdir, path)
		}
		l.cfg.Watch = []string{path}
		l.file(path, LayerFlag)
		l.userDeny(path)
		return
	}
	user := l.cfg.Dirs.UserFile()
	l.cfg.Watch = []string{user}
	l.file(user, LayerUser)
	if opt.NoProject {
		return
	}
	found, candidates := findProject(sys.Workdir)
	l.cfg.Watch = append(l.cfg.Watch, candidates...)
	for _, path := range found {
		if path != user {
			l.file(path, LayerProject)
		}
	}
}

// userDeny adds the deny rules of the user file to those of the --config file at flag, so
// that a command line cannot remove them. It ignores the rest of the user file. A user
// file that cannot be read or parsed blocks calls, since its rules are unknown; one that
// does not exist, or that another user keeps private, has no rules for this one.
func (l *loader) userDeny(flag string) {
	user := l.cfg.Dirs.UserFile()
	if l.cfg.Dirs.Config == "" || user == filepath.Clean(flag) {
		return
	}
	l.cfg.Watch = append(l.cfg.Watch, user)
	// Read like a project file: rules that only deny may come from a file that others can write.
	text, _, err := readConfig(user, LayerProject)
	if err != nil {
		if !withoutRules(user, err, os.Geteuid()) {
			l.blame(err)
		}
		return
	}
	own, err := Parse(user, text, LayerUser)
	if err = errors.Join(err, own.Usher.Problem); err != nil {
		l.blame(err)
	}
	l.cfg.Usher.Policy.Deny = append(l.cfg.Usher.Policy.Deny, own.Usher.Policy.Deny...)
}

// withoutRules reports whether err, from reading the user file at path, means that there
// are no rules for the user self: there is no file, or it is in a place of another user
// (HOME may be inherited from one). A file of self that cannot be opened has rules.
func withoutRules(path string, err error, self int) bool {
	if !errors.Is(err, fs.ErrPermission) {
		return errors.Is(err, fs.ErrNotExist)
	}
	info, err := os.Stat(path)
	for err != nil && path != filepath.Dir(path) { // the directory that cannot be searched
		path = filepath.Dir(path)
		info, err = os.Stat(path)
	}
	if err != nil {
		return false
	}
	owner, known := ownerOf(info)
	return known && owner != self
}

// file adds one file to what has been read so far.
func (l *loader) file(path string, layer Layer) {
	text, warnings, err := readConfig(path, layer)
	if errors.Is(err, fs.ErrNotExist) && layer == LayerUser {
		return
	}
	l.cfg.Warnings = append(l.cfg.Warnings, warnings...)
	f := File{Path: path, Layer: layer}
	if err == nil {
		f.Servers, err = l.decode(&jsonc.Source{File: path, Text: text}, layer)
	}
	f.Err = err
	if err != nil && layer != LayerProject {
		l.blame(err)
		l.cfg.Usher.unread = errors.Join(l.cfg.Usher.unread, err)
	}
	l.cfg.Files = append(l.cfg.Files, f)
}

// blame records that trusted settings could not be read.
func (l *loader) blame(err error) {
	l.cfg.Usher.Problem = errors.Join(l.cfg.Usher.Problem, err)
}

// decode reads a whole file; an error means that nothing of it was used.
func (l *loader) decode(src *jsonc.Source, layer Layer) (int, error) {
	root, err := jsonc.Parse(src)
	if err != nil {
		return 0, err
	}
	d := &decoder{src: src}
	var servers []Server
	var settings *hujson.Value
	var inputs []Input
	errs := d.object(root, "the file", map[string]setter{
		"mcpServers": d.servers(layer, &servers),
		"servers":    d.servers(layer, &servers),
		"inputs":     d.inputs(&inputs),
		"usher":      func(v hujson.Value) error { settings = &v; return nil },
	})
	if len(errs) > 0 {
		return 0, join(errs)
	}
	if settings != nil {
		l.settings(d, *settings, layer)
	}
	l.cfg.Inputs = append(l.cfg.Inputs, inputs...)
	l.cfg.Warnings = append(l.cfg.Warnings, d.warnings...)
	l.add(servers)
	return len(servers), nil
}

func (l *loader) settings(d *decoder, v hujson.Value, layer Layer) {
	if layer != LayerProject {
		d.settings(v, layer, &l.cfg.Usher)
		if len(d.problems) > 0 {
			l.blame(join(d.problems))
		}
		if d.unread != nil {
			l.cfg.Usher.unread = errors.Join(l.cfg.Usher.unread, d.unread)
		}
		l.cfg.Usher.Mistakes = append(l.cfg.Usher.Mistakes, d.mistakes...)
		for _, m := range d.mistakes {
			d.warnings = append(d.warnings, m.Warning())
		}
		return
	}
	// Somebody else wrote it: it may forbid, not allow, and not redirect.
	theirs := DefaultSettings()
	d.settings(v, layer, &theirs)
	for _, m := range d.mistakes {
		d.problems = append(d.problems, m.Err)
	}
	for _, err := range d.problems {
		d.warnings = append(d.warnings, jsonc.Warning{Msg: err.Error()})
	}
	l.cfg.Usher.Policy.Deny = append(l.cfg.Usher.Policy.Deny, theirs.Policy.Deny...)
	theirs.Policy.Deny = nil
	if !reflect.DeepEqual(theirs, DefaultSettings()) {
		d.warnings = append(d.warnings, d.src.WarningAt(v.StartOffset,
			"of the settings in a project file only usher.policy.deny is used; put the others in %s", l.cfg.Dirs.UserFile()))
	}
}

// add merges the servers of one file into those of earlier layers.
func (l *loader) add(servers []Server) {
	for _, s := range servers {
		if old, ok := l.servers[s.Name]; ok && old.Origin.File != s.Origin.File {
			s.Origin.Shadows = fmt.Sprintf("%s:%d", old.Origin.File, old.Origin.Line)
			if old.Origin.Layer == LayerProject && s.Origin.Layer == LayerProject {
				s.Origin.Shadows = old.Origin.Shadows // one author, two files
			}
		}
		l.servers[s.Name] = s
	}
}

// environment applies USHER_… variables.
func (l *loader) environment(sys System) {
	for _, path := range SettingPaths() {
		name := Variable(path)
		text, ok := sys.LookupEnv(name)
		if !ok {
			continue
		}
		raised, err := l.cfg.Usher.override(path, text, Origin{File: "environment variable " + name})
		if raised != "" {
			l.warn("environment variable " + name + ": " + raised)
		}
		if err != nil {
			l.variable(path, fmt.Errorf("environment variable %s: %w", name, err))
		}
	}
}

// variable records that the value of a variable cannot be used.
func (l *loader) variable(path string, err error) {
	if failsClosed(path) {
		l.blame(err)
		return
	}
	m := Mistake{Path: path, Err: err}
	l.cfg.Usher.Mistakes = append(l.cfg.Usher.Mistakes, m)
	l.cfg.Warnings = append(l.cfg.Warnings, m.Warning())
}

func (l *loader) warn(text string) {
	if text != "" {
		l.cfg.Warnings = append(l.cfg.Warnings, jsonc.Warning{Msg: text})
	}
}

func (l *loader) unusable() error {
	var errs []error
	for _, f := range l.cfg.Files {
		if f.Err == nil {
			return nil
		}
		errs = append(errs, f.Err)
	}
	return join(errs)
}

// servers reads "mcpServers" or "servers"; list collects those of both.
func (d *decoder) servers(layer Layer, list *[]Server) setter {
	return func(v hujson.Value) error {
		obj, ok := v.Value.(*hujson.Object)
		if !ok {
			return d.mismatch(v, "the list of servers", "an object with a server under each name")
		}
		for _, m := range obj.Members {
			name := m.Name.Value.(hujson.Literal).String()
			s := d.server(name, m.Name, m.Value, layer)
			if i := slices.IndexFunc(*list, func(o Server) bool { return o.Name == name }); i >= 0 {
				first := &(*list)[i]
				first.Problem = d.src.ErrorAt(m.Name.StartOffset, "server %s is defined twice, first at line %d; remove one", visible.Quote(name), first.Origin.Line)
				continue
			}
			*list = append(*list, s)
		}
		return nil
	}
}

// inputs reads the questions as VS Code writes them. One that cannot be asked
// here is left out; a server that needs it says so when it is resolved.
func (d *decoder) inputs(p *[]Input) setter {
	return func(v hujson.Value) error {
		arr, ok := v.Value.(*hujson.Array)
		if !ok {
			return d.mismatch(v, "inputs", "an array")
		}
		for _, e := range arr.Elements {
			var in Input
			var kind, ignored string
			errs := d.object(e, "inputs", map[string]setter{
				"id": d.str("id", &in.ID), "type": d.str("type", &kind),
				"description": d.str("description", &in.Description), "password": d.boolean("password", &in.Password),
				"options": d.strs("options", &in.Options), "default": d.str("default", &in.Default),
				"command": d.str("command", &ignored), "args": func(hujson.Value) error { return nil },
			})
			if len(errs) > 0 || !template.ValidSecretName(in.ID) || strings.EqualFold(kind, "command") {
				d.warnings = append(d.warnings, d.src.WarningAt(e.StartOffset, "this input cannot be asked for and is ignored"))
				continue
			}
			*p = append(*p, in)
		}
		return nil
	}
}
