package config

import (
	"errors"
	"fmt"
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

// settings reads the "usher" block into s. What is wrong goes to d.problems and
// d.mistakes.
func (d *decoder) settings(v hujson.Value, layer Layer, s *Settings) {
	special := map[string]setter{
		"policy.allow":      d.rules("policy.allow", layer, &s.Policy.Allow),
		"policy.deny":       d.rules("policy.deny", layer, &s.Policy.Deny),
		"budgets.servers":   d.serverBudgets(&s.Budgets),
		"gateway.profiles":  d.profiles(&s.Gateway.Profiles),
		"telemetry.headers": orKeep(&s.Telemetry.Headers, d.dict("telemetry.headers", &s.Telemetry.Headers)),
	}
	for _, st := range s.list() {
		special[st.path] = d.setting(st)
	}
	d.tree(v, "", special)
}

// tree reads an object whose setters are known by their dotted paths.
func (d *decoder) tree(v hujson.Value, prefix string, known map[string]setter) {
	here := map[string]setter{}
	for path, set := range known {
		rest, ok := strings.CutPrefix(path, prefix)
		if !ok {
			continue
		}
		name, _, deeper := strings.Cut(rest, ".")
		if !deeper {
			here[name] = func(v hujson.Value) error { d.judge(path, set(v)); return nil }
			continue
		}
		here[name] = func(v hujson.Value) error { d.tree(v, prefix+name+".", known); return nil }
	}
	where := strings.TrimSuffix("usher."+prefix, ".")
	for _, err := range d.object(v, where, here) { // no object at all, or a key that stands twice
		path := prefix
		if e, ok := errors.AsType[*jsonc.Error](err); ok && e.Key != "" {
			path += e.Key
		}
		d.judge(strings.TrimSuffix(path, "."), err)
	}
}

// setting reads one value; a wrong one leaves what was there before.
func (d *decoder) setting(st setting) setter {
	switch p := st.value.(type) {
	case *string:
		return orKeep(p, d.checked(st, d.template(st.path, p)))
	case *[]string:
		return orKeep(p, d.checked(st, d.strs(st.path, p)))
	case *bool:
		return orKeep(p, d.checked(st, d.boolean(st.path, p)))
	case *int:
		return orKeep(p, d.checked(st, d.text(st)))
	case *int64:
		return orKeep(p, d.checked(st, d.text(st)))
	case *float64:
		return orKeep(p, d.checked(st, d.text(st)))
	case *time.Duration:
		return orKeep(p, d.checked(st, d.text(st)))
	}
	return func(v hujson.Value) error { return d.mismatch(v, st.path, "something else") }
}

// checked applies the check of a setting to what set has read.
func (d *decoder) checked(st setting, set setter) setter {
	return func(v hujson.Value) error {
		if err := set(v); err != nil || st.check == nil {
			return err
		}
		return d.raised(v, st.path, st.check())
	}
}

// text reads numbers and durations as the environment gives them.
func (d *decoder) text(st setting) setter {
	return func(v hujson.Value) error {
		l, ok := jsonc.Literal(v)
		if _, isDuration := st.value.(*time.Duration); !ok || l.Kind() != '0' && !(isDuration && l.Kind() == '"') {
			return d.mismatch(v, st.path, "a number")
		}
		if err := parseSetting(st.value, l.String()); err != nil {
			return d.src.ErrorAt(v.StartOffset, "%s: %v", st.path, err)
		}
		return nil
	}
}

// parseSetting stores text, as the environment or a flag gives it.
func parseSetting(value any, text string) error {
	var err error
	switch p := value.(type) {
	case *string:
		*p = text
		_, err = template.Parse(text)
	case *[]string:
		*p = splitList(text)
	case *bool:
		if *p, err = strconv.ParseBool(text); err != nil {
			return fmt.Errorf("%s is not true or false", visible.Quote(text))
		}
	case *int:
		if *p, err = strconv.Atoi(text); err != nil {
			return fmt.Errorf("%s is not a whole number", visible.Quote(text))
		}
	case *int64:
		if *p, err = strconv.ParseInt(text, 10, 64); err != nil {
			return fmt.Errorf("%s is not a whole number", visible.Quote(text))
		}
	case *float64:
		if *p, err = strconv.ParseFloat(text, 64); err != nil {
			return fmt.Errorf("%s is not a number", visible.Quote(text))
		}
	case *time.Duration:
		*p, err = parseDuration(text)
	}
	return err
}

func splitList(text string) []string {
	var out []string
	for _, item := range strings.Split(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}

// override sets one setting from text; origin stands in the rules it makes. raised says
// that the value was too low and what is used, or is empty.
func (s *Settings) override(path, text string, origin Origin) (raised string, err error) {
	var rules *[]Rule
	switch path {
	case "policy.allow":
		rules = &s.Policy.Allow
	case "policy.deny":
		rules = &s.Policy.Deny
	}
	if rules != nil {
		var list []Rule
		if path == "policy.deny" {
			list = slices.Clone(*rules) // a variable adds deny rules and removes none
		}
		for _, pattern := range splitList(text) {
			if err := CheckRule(pattern); err != nil {
				return "", err
			}
			list = append(list, Rule{Pattern: pattern, Origin: origin})
		}
		*rules = list
		return "", nil
	}
	i := slices.IndexFunc(s.list(), func(st setting) bool { return st.path == path })
	if i < 0 {
		return "", fmt.Errorf("there is no setting %s%s", visible.Quote(path), suggest.DidYouMean(path, SettingPaths()))
	}
	next := *s
	st := next.list()[i]
	if err := parseSetting(st.value, text); err != nil {
		return "", err
	}
	if st.check != nil {
		raised, err = raise(path, st.check())
	}
	if err != nil {
		return "", err
	}
	next.replaced(path)
	*s = next
	return raised, nil
}

// CheckRule says what is wrong with a rule, or returns nil. A rule is a glob
// over server names, optionally followed by "/" and a glob over tool names.
func CheckRule(pattern string) error {
	server, tool, both := strings.Cut(pattern, "/")
	if err := checkGlob(server); err != nil {
		return err
	}
	if !both {
		return nil
	}
	if strings.Contains(tool, "/") {
		return fmt.Errorf("%s has more than one /; a rule is server/tool", visible.Quote(pattern))
	}
	return checkGlob(tool)
}

func (d *decoder) rules(what string, layer Layer, p *[]Rule) setter {
	return func(v hujson.Value) error {
		arr, ok := v.Value.(*hujson.Array)
		if !ok {
			return d.mismatch(v, what, "an array of rules")
		}
		var list []Rule
		for _, e := range arr.Elements {
			var pattern string
			if err := d.str(what, &pattern)(e); err != nil {
				return err
			}
			if err := CheckRule(pattern); err != nil {
				return d.src.ErrorAt(e.StartOffset, "%s: %v", what, err)
			}
			r := Rule{Pattern: pattern, Origin: Origin{File: d.src.File, Layer: layer}}
			r.Origin.Line, r.Origin.Column = d.src.Position(e.StartOffset)
			list = append(list, r)
		}
		*p = list
		return nil
	}
}

func (d *decoder) serverBudgets(p *Budgets) setter {
	return func(v hujson.Value) error {
		obj, ok := v.Value.(*hujson.Object)
		if !ok {
			return d.mismatch(v, "budgets.servers", "an object")
		}
		var errs []error
		out := map[string]Budget{}
		for name, m := range d.members(obj, "budgets.servers", &errs) {
			b := Budget{Window: time.Hour}
			errs = append(errs, d.object(m.Value, "budgets.servers."+name, map[string]setter{
				"run":    d.count("run", &b.Run),
				"calls":  d.count("calls", &b.Calls),
				"window": d.duration("window", &b.Window, time.Second),
			})...)
			out[name] = b
		}
		p.Servers = out
		return join(errs)
	}
}

func (d *decoder) profiles(p *map[string]Profile) setter {
	return func(v hujson.Value) error {
		obj, ok := v.Value.(*hujson.Object)
		if !ok {
			return d.mismatch(v, "gateway.profiles", "an object")
		}
		var twice []error
		out := map[string]Profile{}
		for name, m := range d.members(obj, "gateway.profiles", &twice) {
			var pr Profile
			var errs []error
			errs = append(errs, d.object(m.Value, "profile "+visible.Quote(name), map[string]setter{
				"servers": d.globs("servers", &pr.Servers), "tools": d.strs("tools", &pr.Tools), "tags": d.strs("tags", &pr.Tags),
			})...)
			for _, rule := range pr.Tools {
				if err := CheckRule(rule); err != nil {
					errs = append(errs, d.src.ErrorAt(m.Value.StartOffset, "profile %s: %v", visible.Quote(name), err))
				}
			}
			if err := CheckName(name); err != nil {
				errs = append(errs, d.src.ErrorAt(m.Name.StartOffset, "profile: %v", err))
			}
			if d.judge("gateway.profiles."+name, join(errs)); len(errs) == 0 {
				out[name] = pr // a wrong one selects nothing, as one that is not there
			}
		}
		*p = out
		return join(twice)
	}
}
