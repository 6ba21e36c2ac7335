package fake

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// Switch is one misbehaviour that is turned on.
type Switch struct {
	Name  string
	Value string
	On    []string // methods; nil is all
	After int      // matching messages that pass unharmed first
	Times int      // how often it fires then; 0 is unlimited

	seen int
}

// ParseSwitch reads the text form of a switch: its name, optionally =value, then
// any of ;on=METHOD,METHOD (or * for all), ;after=N and ;times=N.
func ParseSwitch(text string) (Switch, error) {
	parts := strings.Split(text, ";")
	name, value, _ := strings.Cut(parts[0], "=")
	known := slices.IndexFunc(Switches(), func(i Info) bool { return i.Name == name })
	if known < 0 {
		return Switch{}, fmt.Errorf("unknown switch %q; known are %s", name, strings.Join(names(), ", "))
	}
	info := Switches()[known]
	sw := Switch{Name: name, Value: value, On: methods(info.On)}
	if _, err := strconv.Atoi(value); err != nil && value != "" && info.number() {
		return Switch{}, fmt.Errorf("switch %q: the value is not a number; it means: %s", text, info.Value)
	}
	return sw.limit(text, parts[1:])
}

// limit reads the parts of a switch's text that say on what and how often it acts.
func (sw Switch) limit(text string, parts []string) (Switch, error) {
	for _, p := range parts {
		key, v, _ := strings.Cut(p, "=")
		var err error
		switch key {
		case "on":
			sw.On = methods(v)
		case "after":
			sw.After, err = strconv.Atoi(v)
		case "times":
			sw.Times, err = strconv.Atoi(v)
		default:
			err = fmt.Errorf("unknown part %q; known are on, after, times", key)
		}
		if err != nil {
			return Switch{}, fmt.Errorf("switch %q: %w", text, err)
		}
	}
	return sw, nil
}

func names() []string {
	var out []string
	for _, i := range Switches() {
		out = append(out, i.Name)
	}
	return out
}

func methods(list string) []string {
	if list == "" || list == "*" {
		return nil
	}
	return strings.Split(list, ",")
}

func mustParse(text string) Switch {
	sw, err := ParseSwitch(text)
	if err != nil {
		panic("fake: " + err.Error())
	}
	return sw
}

// switchSet is the switches that are on.
type switchSet struct {
	any atomic.Bool // there was one: a well-behaved server does not even look
	mu  sync.Mutex  // guards on
	on  map[string]*Switch
}

func newSwitchSet(texts []string) *switchSet {
	set := &switchSet{on: map[string]*Switch{}}
	for _, t := range texts {
		set.set(mustParse(t))
	}
	return set
}

func (ss *switchSet) set(sw Switch) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.on[sw.Name] = &sw
	ss.any.Store(true)
}

func (ss *switchSet) clear(name string) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	delete(ss.on, name)
}

// fire asks whether the switch misbehaves at a message of this method, and counts
// the message. Ask once per message.
func (ss *switchSet) fire(name, method string) (value, bool) {
	if !ss.any.Load() {
		return "", false
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	sw := ss.on[name]
	if sw == nil || (sw.On != nil && !slices.Contains(sw.On, method)) {
		return "", false
	}
	sw.seen++
	if sw.seen <= sw.After || (sw.Times > 0 && sw.seen > sw.After+sw.Times) {
		return "", false
	}
	return value(sw.Value), true
}

// get asks whether the switch is on at all, without counting.
func (ss *switchSet) get(name string) (value, bool) {
	if !ss.any.Load() {
		return "", false
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if sw := ss.on[name]; sw != nil {
		return value(sw.Value), true
	}
	return "", false
}

// value is the value of a switch, possibly empty.
type value string

func (v value) number(def int) int {
	if n, err := strconv.Atoi(string(v)); err == nil {
		return n
	}
	return def
}

func (v value) text(def string) string {
	if v == "" {
		return def
	}
	return string(v)
}
