package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tailscale/hujson"

	"github.com/usher-mcp/usher/config/jsonc"
	"github.com/usher-mcp/usher/config/template"
	"github.com/usher-mcp/usher/internal/suggest"
	"github.com/usher-mcp/usher/internal/visible"
)

// decoder reads values out of a syntax tree, so that every complaint has a
// place. Unknown keys become warnings.
type decoder struct {
	src      *jsonc.Source
	warnings []jsonc.Warning

	// What is wrong with settings, see judge.
	problems []error
	mistakes []Mistake
	unread   error
}

// setter stores one value, or says what is wrong with it.
type setter func(v hujson.Value) error

// object reads the members of an object with the setter of each known key.
// where names the object in messages. All mistakes are returned, in order.
func (d *decoder) object(v hujson.Value, where string, known map[string]setter) []error {
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		return []error{d.mismatch(v, where, "an object")}
	}
	var errs []error
	for key, m := range d.members(obj, where, &errs) {
		set, ok := known[key]
		switch {
		case ok && isNull(m.Value): // as if it were not written
		case ok:
			if err := set(m.Value); err != nil {
				errs = append(errs, err)
			}
		case strings.HasPrefix(key, "x-"), key == "$schema": // meant for others
		default:
			d.unknownKey(m.Name, key, where, slices.Collect(maps.Keys(known)))
		}
	}
	return errs
}

func (d *decoder) unknownKey(name hujson.Value, key, where string, known []string) {
	d.warnings = append(d.warnings, d.src.WarningAt(name.StartOffset,
		"unknown key %s in %s is ignored%s", visible.Quote(key), where, suggest.DidYouMean(key, known)))
}

// members yields the members of an object by key and reports keys that occur
// twice: which one wins would differ from reader to reader.
func (d *decoder) members(obj *hujson.Object, where string, errs *[]error) func(yield func(string, hujson.ObjectMember) bool) {
	return func(yield func(string, hujson.ObjectMember) bool) {
		first := map[string]int{}
		for _, m := range obj.Members {
			key := m.Name.Value.(hujson.Literal).String()
			if at, dup := first[key]; dup {
				line, _ := d.src.Position(at)
				twice := d.src.ErrorAt(m.Name.StartOffset,
					"the key %s stands twice in %s, first at line %d", visible.Quote(key), where, line)
				twice.Key = key
				*errs = append(*errs, twice)
				continue
			}
			first[key] = m.Name.StartOffset
			if !yield(key, m) {
				return
			}
		}
	}
}

// mismatch is the error for a value of the wrong kind.
func (d *decoder) mismatch(v hujson.Value, what, want string) error {
	return d.src.ErrorAt(v.StartOffset, "%s must be %s, not %s", what, want, jsonc.KindName(v))
}

func isNull(v hujson.Value) bool { return v.Value.Kind() == 'n' }

func (d *decoder) str(what string, p *string) setter {
	return func(v hujson.Value) error {
		l, ok := jsonc.Literal(v)
		if !ok || l.Kind() != '"' {
			return d.mismatch(v, what, "a string")
		}
		*p = l.String()
		return nil
	}
}

// template is str for a string that may hold placeholders.
func (d *decoder) template(what string, p *string) setter {
	return func(v hujson.Value) error {
		if err := d.str(what, p)(v); err != nil {
			return err
		}
		return d.checkTemplate(v, what, *p)
	}
}

func (d *decoder) checkTemplate(v hujson.Value, what, s string) error {
	if _, err := template.Parse(s); err != nil {
		return d.src.ErrorAt(v.StartOffset, "%s: %v", what, err)
	}
	return nil
}

// scalar takes strings, and numbers and booleans as they are written, since
// people write "PORT": 8080.
func (d *decoder) scalar(v hujson.Value, what string) (string, error) {
	l, ok := jsonc.Literal(v)
	if !ok || l.Kind() == 'n' {
		return "", d.mismatch(v, what, "a string")
	}
	s := l.String()
	return s, d.checkTemplate(v, what, s)
}

func (d *decoder) strs(what string, p *[]string) setter {
	return func(v hujson.Value) error {
		arr, ok := v.Value.(*hujson.Array)
		if !ok {
			return d.mismatch(v, what, "an array of strings")
		}
		list := make([]string, 0, len(arr.Elements))
		for i, e := range arr.Elements {
			s, err := d.scalar(e, fmt.Sprintf("%s[%d]", what, i))
			if err != nil {
				return err
			}
			list = append(list, s)
		}
		*p = list
		return nil
	}
}

// dict reads an object of strings; a member that is null is left out.
func (d *decoder) dict(what string, p *map[string]string) setter {
	return func(v hujson.Value) error {
		obj, ok := v.Value.(*hujson.Object)
		if !ok {
			return d.mismatch(v, what, "an object of strings")
		}
		var errs []error
		out := map[string]string{}
		for key, m := range d.members(obj, what, &errs) {
			if isNull(m.Value) {
				continue
			}
			s, err := d.scalar(m.Value, what+"."+key)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			out[key] = s
		}
		*p = out
		return join(errs)
	}
}

func (d *decoder) boolean(what string, p *bool) setter {
	return func(v hujson.Value) error {
		l, ok := jsonc.Literal(v)
		if !ok || l.Kind() != 't' && l.Kind() != 'f' {
			return d.mismatch(v, what, "true or false")
		}
		*p = l.Bool()
		return nil
	}
}

// number reads an integer and raises it to low.
func number[T int | int64](d *decoder, what string, p *T, low T) setter {
	return func(v hujson.Value) error {
		l, ok := jsonc.Literal(v)
		if !ok || l.Kind() != '0' {
			return d.mismatch(v, what, "a number")
		}
		n, err := strconv.ParseInt(string(l), 10, strconv.IntSize)
		if err != nil {
			return d.src.ErrorAt(v.StartOffset, "%s must be a whole number of at least %d", what, low)
		}
		*p = T(n)
		return d.raised(v, what, atLeast(p, low)())
	}
}

// duration reads "90s" or a number of seconds and raises it to low.
func (d *decoder) duration(what string, p *time.Duration, low time.Duration) setter {
	return func(v hujson.Value) error {
		l, ok := jsonc.Literal(v)
		if !ok || l.Kind() != '0' && l.Kind() != '"' {
			return d.mismatch(v, what, `a duration such as "30s" or a number of seconds`)
		}
		dur, err := parseDuration(l.String())
		if err != nil {
			return d.src.ErrorAt(v.StartOffset, "%s: %v", what, err)
		}
		*p = dur
		return d.raised(v, what, atLeast(p, low)())
	}
}

func parseDuration(s string) (time.Duration, error) {
	if seconds, err := strconv.ParseFloat(s, 64); err == nil {
		if math.IsNaN(seconds) || math.Abs(seconds) > float64(math.MaxInt64/int64(time.Second)) {
			return 0, errors.New("the duration is out of range")
		}
		return time.Duration(seconds * float64(time.Second)), nil
	}
	dur, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf(`%s is not a duration; write "30s", "5m" or a number of seconds`, visible.Quote(s))
	}
	return dur, nil
}

func (d *decoder) oneOf(what string, set func(string), values ...string) setter {
	return func(v hujson.Value) error {
		var s string
		if err := d.str(what, &s)(v); err != nil {
			return err
		}
		if !slices.Contains(values, s) {
			return d.src.ErrorAt(v.StartOffset, "%s must be one of %s, not %s%s",
				what, strings.Join(values, ", "), visible.Quote(s), suggest.DidYouMean(s, values))
		}
		set(s)
		return nil
	}
}

// nested reads an object inside an object.
func (d *decoder) nested(what string, known map[string]setter) setter {
	return func(v hujson.Value) error { return join(d.object(v, what, known)) }
}

// join is errors.Join that leaves a single error as it is.
func join(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}
