package clients

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/edit"
)

// Target is the file that servers are imported into.
type Target struct {
	File string
	// Project says that others will read the file: literal credentials are
	// moved out, and a server that one cannot be moved out of is left out.
	Project bool
	// MoveSecrets moves literal credentials out of any other target too.
	MoveSecrets bool
	// Replace overwrites servers of the same name instead of leaving them.
	Replace bool
}

// Plan is what an import would write. Nothing is written before Apply.
type Plan struct {
	Target  Target
	Add     []Planned
	Inputs  []config.Input
	Skipped []Skipped
}

// Planned is one server that would be written.
type Planned struct {
	Server  config.Server
	From    []string // the files it was found in, "cursor: /home/me/.cursor/mcp.json"
	Project bool     // it was found in a project's file
	Notes   []string
	// Secrets are the credentials that have become ${secret:NAME}; the caller that
	// applies the plan stores them under those names first.
	Secrets []config.MovedSecret

	identity, credentials string
}

// Skipped is an entry that would not be written, and why.
type Skipped struct {
	From   string
	Name   string
	Reason string
}

// NewPlan decides what of the servers found goes into the target. The same
// server with the same credentials in several files is taken once; with other
// credentials it is another account and gets another name.
func NewPlan(found []Found, target Target) (*Plan, error) {
	existing, err := readTarget(target.File)
	if err != nil {
		return nil, err
	}
	p := &Plan{Target: target}
	for _, f := range found {
		from := f.Client + ": " + f.File
		if f.Err != nil {
			p.Skipped = append(p.Skipped, Skipped{from, "", f.Err.Error()})
			continue
		}
		for _, s := range f.Skipped {
			p.Skipped = append(p.Skipped, Skipped{from, s.Name, s.Reason})
		}
		for _, im := range f.Servers {
			p.add(im, f, from, existing)
		}
		p.inputs(f.Inputs)
	}
	p.moveSecrets()
	return p, nil
}

// readTarget returns the servers that the target holds.
func readTarget(file string) (map[string]config.Server, error) {
	out := map[string]config.Server{}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(bytes.TrimSpace(text)) == 0 {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	c, err := config.Parse(file, text, config.LayerFlag)
	if err != nil {
		return nil, fmt.Errorf("the target cannot be read: %w", err)
	}
	for _, s := range c.Servers {
		out[s.Name] = s
	}
	return out, nil
}

func (p *Plan) add(im Imported, f Found, from string, existing map[string]config.Server) {
	n := Planned{
		Server: im.Server, From: []string{from}, Project: f.Project, Notes: slices.Clone(im.Notes),
		identity: identity(im.Server), credentials: credentials(im.Server),
	}
	if f.Project {
		n.Notes = append(n.Notes, "found in a project's file, which somebody else may have written")
	}
	for i := range p.Add {
		old := &p.Add[i]
		if old.identity != n.identity {
			continue
		}
		if old.credentials == n.credentials {
			old.From = append(old.From, from)
			return
		}
		n.Notes = append(n.Notes, fmt.Sprintf("the same server as %s with other credentials: a second account", old.Server.Name))
	}
	if reason := p.known(n, existing); reason != "" {
		p.Skipped = append(p.Skipped, Skipped{from, im.Original, reason})
		return
	}
	p.rename(&n, f.Client, existing)
	p.Add = append(p.Add, n)
}

// known says that the target needs no such server, or returns "".
func (p *Plan) known(n Planned, existing map[string]config.Server) string {
	if p.Target.Replace {
		return ""
	}
	if old, ok := existing[n.Server.Name]; ok {
		if identity(old) != n.identity {
			return fmt.Sprintf("another server called %s is in the target, at line %d; rename one of them", old.Name, old.Origin.Line)
		}
		return fmt.Sprintf("%s is in the target already, at line %d", old.Name, old.Origin.Line)
	}
	for _, name := range sortedKeys(existing) {
		if old := existing[name]; identity(old) == n.identity && credentials(old) == n.credentials {
			return fmt.Sprintf("it is in the target already as %s, at line %d", name, old.Origin.Line)
		}
	}
	return ""
}

// rename gives a server another name when an earlier one of the plan has it.
func (p *Plan) rename(n *Planned, client string, existing map[string]config.Server) {
	taken := func(name string) bool {
		_, there := existing[name]
		return there && !p.Target.Replace || slices.ContainsFunc(p.Add, func(o Planned) bool { return o.Server.Name == name })
	}
	base := n.Server.Name
	if !taken(base) {
		return
	}
	name := base + "-" + client
	for i := 2; taken(name); i++ {
		name = fmt.Sprintf("%s-%s-%d", base, client, i)
	}
	if n.Server.Title == "" {
		n.Server.Title = base
	}
	n.Server.Name = name
	n.Notes = append(n.Notes, "renamed, for another server is called "+base)
}

func (p *Plan) inputs(list []config.Input) {
	for _, in := range list {
		if !slices.ContainsFunc(p.Inputs, func(o config.Input) bool { return o.ID == in.ID }) {
			p.Inputs = append(p.Inputs, in)
		}
	}
}

func (p *Plan) moveSecrets() {
	if !p.Target.Project && !p.Target.MoveSecrets {
		return
	}
	var kept []Planned
	for _, n := range p.Add {
		out, moved, clean := n.Server.MoveSecrets()
		if !clean && p.Target.Project {
			p.Skipped = append(p.Skipped, Skipped{n.From[0], n.Server.Name, "it holds a credential that cannot be moved out; add it by hand"})
			continue
		}
		n.Server, n.Secrets = out, moved
		for _, m := range moved {
			n.Notes = append(n.Notes, "a credential became ${secret:"+m.Name+"}")
		}
		kept = append(kept, n)
	}
	p.Add = kept
}

// Preview returns the text that the target would hold after Apply. It may
// hold literal credentials, as the target would.
func (p *Plan) Preview() ([]byte, error) {
	before, err := os.ReadFile(p.Target.File)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	doc, err := edit.Parse(p.Target.File, before)
	if err != nil {
		return nil, err
	}
	if err := p.edit(doc); err != nil {
		return nil, err
	}
	return doc.Bytes(), nil
}

// Apply writes the target. Store the Secrets of each server first: until then
// its placeholders have no value.
func (p *Plan) Apply() error {
	_, err := edit.Update(p.Target.File, p.edit)
	return err
}

func (p *Plan) edit(doc *edit.Document) error {
	for _, n := range p.Add {
		if err := doc.Add(n.Server, p.Target.Replace); err != nil {
			return err
		}
	}
	return doc.AddInputs(p.Inputs)
}

// String says in a few lines what the plan would do, without credentials.
func (p *Plan) String() string {
	var b strings.Builder
	for _, n := range p.Add {
		s := n.Server.Masked()
		what := s.URL
		if what == "" {
			what = strings.Join(append([]string{s.Command}, s.Args...), " ")
		}
		fmt.Fprintf(&b, "+ %s  %s  (%s)\n", s.Name, config.Unquoted(what), config.Unquoted(strings.Join(n.From, "; ")))
		for _, note := range n.Notes {
			fmt.Fprintf(&b, "    %s\n", config.Unquoted(note))
		}
	}
	for _, s := range p.Skipped {
		fmt.Fprintf(&b, "- %s  %s  (%s)\n", config.Unquoted(s.Name), config.Unquoted(s.Reason), config.Unquoted(s.From))
	}
	return b.String()
}
