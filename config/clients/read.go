package clients

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/clients/syntax"
)

// Found is what one file of one client holds.
type Found struct {
	Client string
	File   string
	// Project says that the file belongs to a project, so that somebody else
	// may have written it.
	Project bool
	Servers []Imported
	Skipped []Skip
	Inputs  []config.Input
	Err     error // why nothing could be read, or nil
}

// Imported is a server in our terms.
type Imported struct {
	Server   config.Server
	Original string   // its name in the file
	Notes    []string // what a person should know
}

// Skip is an entry that is not imported, and why.
type Skip struct {
	Name   string
	Reason string
}

// reading is a file while it is being read.
type reading struct {
	client  client
	sys     config.System
	path    string
	project string // directory of the project, for ${workspaceFolder}
	tree    map[string]any
	found   *Found
	taken   map[string]bool // names given so far
	strange []string        // what looked like interpolation and was left as text
}

// Find reads the files of the named clients, or of all when none is named.
// Files that do not exist are left out; a file that cannot be read is in the
// result with its Err. An unknown name is an error.
func Find(sys config.System, names ...string) ([]Found, error) {
	sys = sys.WithDefaults()
	if sys.Home == "" {
		return nil, errors.New("find the home directory: HOME is not set; set it")
	}
	var out []Found
	for _, name := range names {
		if !slices.ContainsFunc(table(), func(c client) bool { return c.name == name }) {
			return nil, unknownClient(name)
		}
	}
	for _, c := range table() {
		if len(names) > 0 && !slices.Contains(names, c.name) {
			continue
		}
		for _, at := range c.files(sys) {
			text, err := syntax.ReadFile(at.path)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			f := Found{Client: c.name, File: at.path, Project: at.project != "", Err: err}
			if err == nil {
				readText(&reading{client: c, sys: sys, path: at.path, project: at.project, found: &f}, text)
			}
			out = append(out, f)
		}
	}
	return out, nil
}

func unknownClient(name string) error {
	var all []string
	for _, c := range table() {
		all = append(all, c.name)
	}
	return fmt.Errorf("there is no client %q; known are %s, or the path of a file", name, strings.Join(all, ", "))
}

type located struct {
	path    string
	project string // its directory, for a project's file
}

// files lists where the client may have files, each once.
func (c client) files(sys config.System) []located {
	var out []located
	for _, path := range c.user(places{sys}) {
		if !slices.ContainsFunc(out, func(l located) bool { return l.path == path }) {
			out = append(out, located{path: path})
		}
	}
	if sys.Workdir == "" || sys.Workdir == sys.Home {
		return out
	}
	for _, name := range c.project {
		out = append(out, located{filepath.Join(sys.Workdir, filepath.FromSlash(name)), sys.Workdir})
	}
	return out
}

// ReadFile reads one file and finds out whose shape it has.
func ReadFile(sys config.System, path string) (Found, error) {
	sys = sys.WithDefaults()
	if !filepath.IsAbs(path) {
		path = filepath.Join(sys.Workdir, path)
	}
	text, err := syntax.ReadFile(path)
	if err != nil {
		return Found{}, err
	}
	tree, err := syntax.Parse(path, text, syntax.Sniff(path, text))
	if err != nil {
		return Found{}, err
	}
	c, ok := sniff(sys, path, tree)
	if !ok {
		return Found{}, fmt.Errorf("%s: no list of MCP servers was found; expected mcpServers, servers, mcp, mcp_servers, context_servers or extensions", path)
	}
	f := Found{Client: c.name, File: path}
	r := &reading{client: c, sys: sys, path: path, project: filepath.Dir(path), tree: tree, found: &f}
	r.all()
	return f, nil
}

// readText reads a file whose client is known.
func readText(r *reading, text []byte) {
	if r.tree, r.found.Err = syntax.Parse(r.path, text, r.client.format); r.found.Err == nil {
		r.all()
	}
}

// all reads every entry, in the order of names, then what the file says
// beside them.
func (r *reading) all() {
	r.taken = map[string]bool{}
	for _, keys := range r.client.keys {
		if list, ok := syntax.Lookup(r.tree, keys); ok {
			r.list(list)
		}
	}
	if r.client.file != nil {
		r.client.file(r)
	}
}

func (r *reading) list(list map[string]any) {
	for _, name := range sortedKeys(list) {
		keys, ok := list[name].(map[string]any)
		if !ok {
			r.skip(name, "it is not an object")
			continue
		}
		r.entry(name, keys)
	}
}

func (r *reading) skip(name, reason string) {
	r.found.Skipped = append(r.found.Skipped, Skip{name, reason})
}

func (r *reading) entry(name string, keys map[string]any) {
	e := &entry{reading: r, name: name, keys: keys, used: map[string]bool{}}
	r.strange = nil
	r.client.read(e)
	slices.Sort(r.strange)
	for _, s := range slices.Compact(r.strange) {
		e.note("%s is left as text; usher has no such variable", s)
	}
	if e.skip == "" && isUsher(e.s.Command, e.s.Args) {
		e.skip = "it is usher itself"
	}
	if e.skip != "" {
		r.skip(name, e.skip)
		return
	}
	e.unwrap()
	s := e.finish()
	if err := s.Validate(); err != nil {
		r.skip(name, err.Error())
		return
	}
	r.found.Servers = append(r.found.Servers, Imported{Server: s, Original: name, Notes: e.notes})
}

// finish fills in what all servers have.
func (e *entry) finish() config.Server {
	s := e.s
	lazy := true
	s.Lazy, s.KeepAlive = &lazy, config.DefaultKeepAlive
	s = s.WithDefaults()
	s.Name = e.unique(NormaliseName(e.name))
	if s.Name != e.name {
		s.Title = e.name
	}
	if left := e.leftovers(); len(left) > 0 {
		s.Foreign = &config.Foreign{Client: e.client.name, Keys: left}
		e.note("no place for %s; kept under x-origin", strings.Join(sortedKeys(left), ", "))
	}
	return s
}

// unique adds a number to a name that is taken in the same file.
func (r *reading) unique(name string) string {
	try := name
	for n := 2; r.taken[try]; n++ {
		try = fmt.Sprintf("%s-%d", name, n)
	}
	r.taken[try] = true
	return try
}

// NormaliseName makes a name of [a-z0-9-] out of any other.
func NormaliseName(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else if b.Len() > 0 && !strings.HasSuffix(b.String(), "-") {
			b.WriteByte('-')
		}
	}
	out := strings.Trim(b.String()[:min(b.Len(), 60)], "-")
	if out == "" {
		return "server"
	}
	return out
}
