package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/usher-mcp/usher/config/template"
)

// maxFileValue bounds what ${file:} reads.
const maxFileValue = 1 << 20

// Lookup is where the values of placeholders come from. A hook that is nil
// makes its kind of placeholder an error that says what to do, so a caller
// offers only what it may. None of the hooks is called before Resolve.
type Lookup struct {
	// Env returns a variable of the environment.
	Env func(name string) (string, bool)
	// Secret returns a stored secret, and false when there is none.
	Secret func(ctx context.Context, name string) (string, bool, error)
	// Input returns the answer to an input, asking if need be.
	Input func(ctx context.Context, id string) (string, bool, error)
	// Command runs a command line and returns its output. The caller decides
	// whether s, in this very definition, has been approved.
	Command func(ctx context.Context, s Server, command string) (string, error)
}

// PlaceholderError says which server, field and placeholder could not be
// filled in, why, and what to do. It never holds a value.
type PlaceholderError struct {
	Server      string
	Field       string
	Placeholder string
	Reason      string
	Hint        string
	Err         error
}

func (e *PlaceholderError) Error() string {
	msg := e.Reason
	if e.Placeholder != "" {
		msg = fmt.Sprintf("%s in %s: %s", e.Placeholder, e.Field, e.Reason)
	} else if e.Field != "" {
		msg = e.Field + ": " + e.Reason
	}
	if e.Server != "" {
		msg = e.Server + ": " + msg
	}
	if e.Hint != "" {
		msg += "; " + e.Hint
	}
	return msg
}

// Unwrap returns the cause.
func (e *PlaceholderError) Unwrap() error { return e.Err }

// Resolve returns a copy in which every placeholder is filled in, Cwd is
// absolute and HeadersFrom has become Headers. It is meant for dial time. The
// first placeholder without a value ends it with a *PlaceholderError; a server
// with a Problem is refused.
func (s Server) Resolve(ctx context.Context, r Lookup) (Server, error) {
	if s.Problem != nil {
		return Server{}, fmt.Errorf("%s is disabled: %w", s.Name, s.Problem)
	}
	out := s.clone()
	rs := resolver{Lookup: r, ctx: ctx, server: s, base: filepath.Dir(s.Origin.File)}
	err := out.walk(func(f field, value string) (string, error) { return rs.expand(f.path, value) })
	if err != nil {
		return Server{}, err
	}
	if out.Cwd != "" {
		if out.Cwd, err = rs.path("cwd", out.Cwd, s.BaseDir()); err != nil {
			return Server{}, err
		}
	}
	if err := out.addHeadersFrom(); err != nil {
		return Server{}, err
	}
	return out, out.checkResolved()
}

// ResolveCard fills in the placeholders of Card alone: the result is an http or https
// URL, or an absolute path.
func (s Server) ResolveCard(ctx context.Context, r Lookup) (string, error) {
	rs := resolver{Lookup: r, ctx: ctx, server: s, base: filepath.Dir(s.Origin.File)}
	at, err := rs.expand("card", s.Card)
	if err != nil {
		return "", err
	}
	if strings.Contains(at, "://") {
		if err := checkURL(at); err != nil {
			return "", &PlaceholderError{Server: s.Name, Field: "card", Reason: err.Error()}
		}
		return at, nil
	}
	return rs.path("card", at, s.BaseDir())
}

// BaseDir is the directory that a relative cwd starts from: the project for a
// project file, else the directory of the file. It is empty for servers made
// by a program.
func (s Server) BaseDir() string {
	if s.Origin.File == "" {
		return ""
	}
	dir := filepath.Dir(s.Origin.File)
	if s.Origin.Layer == LayerProject && filepath.Base(dir) == projectDir {
		return filepath.Dir(dir)
	}
	return dir
}

type resolver struct {
	Lookup
	ctx    context.Context // one Resolve only; the resolver does not outlive it
	server Server
	base   string // relative files start here
}

func (r resolver) expand(path, value string) (string, error) {
	parts, err := template.Parse(value)
	if err != nil {
		return "", &PlaceholderError{Server: r.server.Name, Field: path, Reason: err.Error(), Err: err}
	}
	var b strings.Builder
	for _, p := range parts {
		if p.Placeholder == nil {
			b.WriteString(p.Text)
			continue
		}
		v, err := r.value(path, p.Placeholder)
		if err != nil {
			return "", err
		}
		b.WriteString(v)
	}
	return b.String(), nil
}

func (r resolver) value(path string, ref *template.Placeholder) (string, error) {
	fail := func(reason, hint string, err error) (string, error) {
		return "", &PlaceholderError{
			Server: r.server.Name, Field: path, Placeholder: ref.String(), Reason: reason, Hint: hint, Err: err,
		}
	}
	switch ref.Kind {
	case template.Env:
		v, ok := "", false
		if r.Env != nil {
			v, ok = r.Env(ref.Name)
		}
		if ref.HasDefault && v == "" {
			return r.expand(path, ref.Default)
		}
		if !ok {
			return fail("the environment variable "+ref.Name+" is not set", fmt.Sprintf("export %s=… or write ${%s:-default}", ref.Name, ref.Name), nil)
		}
		return v, nil
	case template.Secret:
		return r.stored(ref, fail, r.Secret, "secret", "usher secret set "+ref.Name)
	case template.Input:
		return r.stored(ref, fail, r.Input, "answer to the input", "usher secret set "+ref.Name)
	case template.File:
		v, err := r.file(path, ref.Name)
		if err != nil {
			return fail("the file cannot be used: "+err.Error(), "create it or change the path", err)
		}
		return v, nil
	default:
		return r.command(ref, fail)
	}
}

type failure func(reason, hint string, err error) (string, error)

func (r resolver) stored(ref *template.Placeholder, fail failure, get func(context.Context, string) (string, bool, error), what, hint string) (string, error) {
	if get == nil {
		return fail("no "+what+" can be looked up here", hint, nil)
	}
	v, ok, err := get(r.ctx, ref.Name)
	switch {
	case err != nil:
		return fail(fmt.Sprintf("the %s %s cannot be read: %v", what, ref.Name, err), hint, err)
	case !ok:
		return fail(fmt.Sprintf("there is no %s %s", what, ref.Name), hint, nil)
	}
	return v, nil
}

func (r resolver) command(ref *template.Placeholder, fail failure) (string, error) {
	hint := "usher approve " + r.server.Name
	if r.Command == nil {
		return fail("commands are not run here without approval", hint, nil)
	}
	v, err := r.Command(r.ctx, r.server.clone(), ref.Name)
	if err != nil {
		return fail("the command gave no value: "+err.Error(), hint, err)
	}
	return trimNewline(v), nil
}

// file reads a value, relative to the file that names it.
func (r resolver) file(field, name string) (string, error) {
	name, err := r.path(field, name, r.base)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFileValue+1))
	if err != nil {
		return "", err
	}
	if len(b) > maxFileValue {
		return "", fmt.Errorf("%s is larger than %d bytes", name, maxFileValue)
	}
	return trimNewline(string(b)), nil
}

// path makes name absolute; a leading ~/ is the home directory.
func (r resolver) path(field, name, base string) (string, error) {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		home, found := "", false
		if r.Env != nil {
			home, found = r.Env("HOME")
		}
		if !found || home == "" {
			return "", &PlaceholderError{
				Server: r.server.Name, Field: field, Reason: "~ stands for HOME, which is not set", Hint: "write the whole path",
			}
		}
		return filepath.Join(home, rest), nil
	}
	if filepath.IsAbs(name) {
		return filepath.Clean(name), nil
	}
	if base == "" || base == "." {
		return "", errors.New("a relative path needs a file to start from; write the whole path")
	}
	return filepath.Join(base, name), nil
}

func trimNewline(s string) string {
	return strings.TrimSuffix(strings.TrimSuffix(s, "\n"), "\r")
}
