package clients

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/clients/syntax"
)

// Presence is what is known of one client on this machine.
type Presence struct {
	Client, Title string
	// File is the one that a link would write.
	File string
	// Found says that the client seems to be installed: its file is there, or a
	// directory of its own.
	Found bool
	// Servers is how many servers the client has of its own.
	Servers int
	// Linked are the entries that start usher, or that usher wrote.
	Linked []Linked
	// Err is why the file cannot be read.
	Err error
}

// Linked is an entry of ours.
type Linked struct {
	File, Name string
	Server     config.Server
}

// Survey looks for every client that is known, or for the named ones.
func (l Links) Survey(names ...string) ([]Presence, error) {
	for _, name := range names {
		if _, ok := byClient(name); !ok {
			return nil, unknownClient(name)
		}
	}
	sys := l.System.WithDefaults()
	var out []Presence
	for _, c := range table() {
		if len(names) > 0 && !slices.Contains(names, c.name) {
			continue
		}
		p := Presence{Client: c.name, Title: c.title, File: c.file0(sys)}
		p.Found = installed(p.File, sys)
		p.Linked, p.Err = l.linked(c)
		if p.Err == nil {
			p.Servers, p.Err = l.own(c, p)
		}
		p.Found = p.Found || len(p.Linked) > 0
		out = append(out, p)
	}
	return out, nil
}

// installed goes by the file, or by its directory if that is the client's own.
func installed(file string, sys config.System) bool {
	if _, err := os.Stat(file); err == nil {
		return true
	}
	dir := filepath.Dir(file)
	if dir == sys.Home {
		return false
	}
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}

// own counts the entries of a client's file that are not ours.
func (l Links) own(c client, p Presence) (int, error) {
	text, _, err := current(p.File)
	if err != nil {
		return 0, err
	}
	tree, err := syntax.Parse(p.File, text, c.format)
	if err != nil {
		return 0, err
	}
	list, _ := syntax.Lookup(tree, c.keys[0])
	n := len(list)
	for _, at := range p.Linked {
		if at.File == p.File {
			n--
		}
	}
	return n, nil
}

// linked finds the entries of ours in the files of a client: those that are
// recorded and still there, and others that start usher.
func (l Links) linked(c client) ([]Linked, error) {
	files := []string{}
	recorded := map[[2]string]bool{}
	for _, r := range l.records(c.name) {
		files = append(files, r.File)
		recorded[[2]string{r.File, r.Name}] = true
	}
	files = append(files, c.user(places{l.System.WithDefaults()})...)
	slices.Sort(files)
	var out []Linked
	for _, file := range slices.Compact(files) {
		text, exists, err := current(file)
		if err != nil {
			return nil, err
		}
		if !exists {
			continue
		}
		tree, err := syntax.Parse(file, text, c.format)
		if err != nil {
			return nil, err
		}
		list, _ := syntax.Lookup(tree, c.keys[0])
		for _, name := range sortedKeys(list) {
			if s, ok := entryIn(c, l.System, tree, name); ok && (isUsher(s.Command, s.Args) || recorded[[2]string{file, name}]) {
				out = append(out, Linked{file, name, s})
			}
		}
	}
	return out, nil
}
