package config

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tailscale/hujson"

	"github.com/usher-mcp/usher/config/jsonc"
)

// Mistake is a setting whose value cannot be used; its default is used instead.
type Mistake struct {
	Path string // "bulk.concurrency", or that of a whole block
	Err  error  // an *Error where it has a place in a file
	// Replaced says that a variable or a flag gives a value that can be used.
	Replaced bool
}

// Warning says what is wrong and what is used instead.
func (m Mistake) Warning() jsonc.Warning {
	const instead = "; the default is used"
	if e, ok := errors.AsType[*jsonc.Error](m.Err); ok {
		return jsonc.Warning{File: e.File, Line: e.Line, Column: e.Column, Msg: e.Msg + instead}
	}
	return jsonc.Warning{Msg: m.Err.Error() + instead}
}

// Mistaken returns what is wrong with the settings at the paths and below them, except
// for those that a variable or a flag replaces; nil if nothing is. A file that could not
// be read may have held any of them. Code that must not go on with a default calls it.
func (s Settings) Mistaken(paths ...string) error {
	var errs []error
	if s.unread != nil {
		errs = append(errs, s.unread)
	}
	for _, m := range s.Mistakes {
		for _, path := range paths {
			// A mistake in a whole block is one in everything below.
			if !m.Replaced && (within(m.Path, path) || within(path, m.Path)) {
				errs = append(errs, m.Err)
				break
			}
		}
	}
	return join(errs)
}

// within reports whether path is at or below top.
func within(path, top string) bool {
	rest, ok := strings.CutPrefix(path, top)
	return ok && (rest == "" || rest[0] == '.')
}

// replaced marks the mistakes in a setting that has got a good value since.
func (s *Settings) replaced(path string) {
	next := make([]Mistake, 0, len(s.Mistakes))
	for _, m := range s.Mistakes {
		m.Replaced = m.Replaced || m.Path == path
		next = append(next, m)
	}
	s.Mistakes = next
}

// failsClosed reports whether a mistake at a path must stop what the settings guard:
// a rule or a budget that is not there would let more through.
func failsClosed(path string) bool { return within(path, "policy") || within(path, "budgets") }

// judge notes what is wrong with the setting at a path.
func (d *decoder) judge(path string, err error) {
	switch {
	case err == nil:
	case path == "":
		d.unread = err
		d.problems = append(d.problems, err)
	case failsClosed(path):
		d.problems = append(d.problems, err)
	default:
		d.mistakes = append(d.mistakes, Mistake{Path: path, Err: err})
	}
}

// lowError is a value below the floor. raise puts the floor in its place.
type lowError struct {
	floor string
	raise func()
}

func (e *lowError) Error() string { return "must be at least " + e.floor }

// raise lifts a value that is too low and says so. Calls of a budget are not lifted: 0
// would be no budget at all.
func raise(path string, bad error) (text string, err error) {
	low, ok := errors.AsType[*lowError](bad)
	if !ok || within(path, "budgets") && !strings.HasSuffix(path, ".window") {
		return "", bad
	}
	low.raise()
	return fmt.Sprintf("%s %v; %s is used", path, bad, low.floor), nil
}

// raised is raise for a value in the file.
func (d *decoder) raised(v hujson.Value, path string, bad error) error {
	if bad == nil {
		return nil
	}
	text, err := raise(path, bad)
	if err != nil {
		return d.src.ErrorAt(v.StartOffset, "%s %v", path, err)
	}
	d.warnings = append(d.warnings, d.src.WarningAt(v.StartOffset, "%s", text))
	return nil
}

// positive reads a duration of more than 0.
func (d *decoder) positive(what string, p *time.Duration) setter {
	return orKeep(p, func(v hujson.Value) error {
		if err := d.duration(what, p, math.MinInt64)(v); err != nil {
			return err
		}
		if bad := aboveZero(p)(); bad != nil {
			return d.src.ErrorAt(v.StartOffset, "%s %v", what, bad)
		}
		return nil
	})
}

// aboveZero checks a duration for which no floor would be of use.
func aboveZero(p *time.Duration) func() error {
	return func() error {
		if *p <= 0 {
			return errors.New("must be more than 0")
		}
		return nil
	}
}

// count reads the calls of a budget.
func (d *decoder) count(what string, p *int64) setter {
	return func(v hujson.Value) error {
		if err := d.text(setting{path: what, value: p})(v); err != nil {
			return err
		}
		if bad := atLeast(p, 0)(); bad != nil {
			return d.src.ErrorAt(v.StartOffset, "%s %v", what, bad)
		}
		return nil
	}
}

// tuning reads an option of a server without which it works as well: a mistake becomes a
// warning, and the default stays.
func (d *decoder) tuning(set setter) setter {
	return func(v hujson.Value) error {
		if err := set(v); err != nil {
			d.warnings = append(d.warnings, Mistake{Err: err}.Warning())
		}
		return nil
	}
}

// orKeep keeps the value that was there when set fails.
func orKeep[T any](p *T, set setter) setter {
	return func(v hujson.Value) error {
		old := *p
		err := set(v)
		if err != nil {
			*p = old
		}
		return err
	}
}
