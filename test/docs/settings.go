package docs

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/usher-mcp/usher/config"
)

// settingsTable documents what stands under "usher".
func settingsTable(src sources, used func(text string) bool) (string, error) {
	paths := config.SettingPaths()
	for _, more := range src.keys("settings") {
		if !slices.Contains(paths, more) {
			paths = append(paths, more)
		}
	}
	slices.Sort(paths)
	if err := sameKeys("settings", paths, aboutSettings); err != nil {
		return "", err
	}
	var rows [][]string
	for _, path := range paths {
		if !shown(path, used) {
			continue
		}
		variable := ""
		if slices.Contains(config.SettingPaths(), path) {
			variable = code(config.Variable(path))
		}
		def := defaultOf(reflect.ValueOf(config.DefaultSettings()), settingField(path))
		about := aboutSettings[path] + choices(path, fmt.Sprintf(`{"usher": %s}`, nest(path, `"?"`)))
		rows = append(rows, []string{code(path), about, code(def), variable})
	}
	return table([]string{"setting", "what it is for", "default", "variable"}, rows), nil
}

// settingField is where a setting stands in config.Settings: the budget of
// everything is called Total there.
func settingField(path string) string {
	if rest, ok := strings.CutPrefix(path, "budgets."); ok && !strings.Contains(rest, ".") && rest != "servers" {
		return "budgets.total." + rest
	}
	return path
}

// serverTable documents the keys of one server.
func serverTable(src sources, used func(text string) bool) (string, error) {
	paths := src.serverKeys()
	if err := sameKeys("keys of a server", paths, aboutServer); err != nil {
		return "", err
	}
	cfg, err := config.Parse("x.json", []byte(`{"mcpServers": {"x": {"command": "y", "oauth": {}}}}`), config.LayerUser)
	if err != nil {
		return "", err
	}
	var rows [][]string
	for _, path := range paths {
		if !shown(path, used) {
			continue
		}
		def := ""
		if path != "type" && path != "transport" && path != "command" && !strings.HasPrefix(path, "x-") {
			def = defaultOf(reflect.ValueOf(cfg.Servers[0]), path)
		}
		about := aboutServer[path] + choices(path, fmt.Sprintf(`{"mcpServers": {"x": %s}}`, nest(path, `"?"`)))
		rows = append(rows, []string{code(path), about, code(def)})
	}
	return table([]string{"key", "what it is for", "default"}, rows), nil
}

// shown leaves out what nothing uses yet.
func shown(path string, used func(string) bool) bool {
	group, _, _ := strings.Cut(path, ".")
	text, needed := needs[group]
	return !needed || used(text)
}

func sameKeys(what string, keys []string, about map[string]string) error {
	for _, k := range keys {
		if about[k] == "" {
			return fmt.Errorf("%s: %s is not described in test/docs/about.go", what, k)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(about)) {
		if !slices.Contains(keys, k) {
			return fmt.Errorf("%s: test/docs/about.go describes %s, which there is not", what, k)
		}
	}
	return nil
}

// nest makes a.b out of a path and a value: {"a": {"b": value}}.
func nest(path, value string) string {
	parts := strings.Split(path, ".")
	for _, p := range slices.Backward(parts) {
		value = fmt.Sprintf("{%q: %s}", p, value)
	}
	return value
}

var oneOf = regexp.MustCompile(`must be one of (.*?), not`)

// choices asks the parser what a value may be, by giving it one that cannot be.
func choices(path, file string) string {
	cfg, err := config.Parse("x.json", []byte(file), config.LayerUser)
	if err == nil {
		err = cfg.Usher.Problem
	}
	if err == nil && len(cfg.Servers) > 0 {
		err = cfg.Servers[0].Problem
	}
	if err == nil && len(cfg.Warnings) > 0 {
		err = errors.New(cfg.Warnings[0].Msg)
	}
	if err == nil || !strings.Contains(err.Error(), path[strings.LastIndexByte(path, '.')+1:]) {
		return ""
	}
	m := oneOf.FindStringSubmatch(err.Error())
	if m == nil {
		return ""
	}
	words := strings.Split(m[1], ", ")
	for i, w := range words {
		words[i] = code(w)
	}
	return ": " + strings.Join(words, ", ")
}

// defaultOf follows a dotted path through structs, by names as files write them.
// What has no field, or the empty value, has no default to speak of.
func defaultOf(v reflect.Value, path string) string {
	for name := range strings.SplitSeq(path, ".") {
		for v.Kind() == reflect.Pointer && !v.IsNil() {
			v = v.Elem()
		}
		if v.Kind() != reflect.Struct {
			return ""
		}
		v = v.FieldByNameFunc(func(field string) bool { return strings.EqualFold(field, name) })
		if !v.IsValid() {
			return ""
		}
	}
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		return shortDuration(x)
	case int64:
		return size(x)
	}
	if v.Kind() == reflect.Struct || v.IsZero() && v.Kind() != reflect.Int && v.Kind() != reflect.Bool {
		return ""
	}
	text, err := json.Marshal(v.Interface())
	if err != nil {
		return ""
	}
	return strings.Trim(string(text), `"`)
}

// shortDuration is 5m instead of 5m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if rest, ok := strings.CutSuffix(s, "m0s"); ok {
		s = rest + "m"
	}
	if rest, ok := strings.CutSuffix(s, "h0m"); ok {
		s = rest + "h"
	}
	return s
}

// size writes a number as the power of two that it is, where it is a large one.
func size(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprint(n)
}
