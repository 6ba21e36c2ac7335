package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// event is one line of go test -json.
type event struct {
	Action, Package, Test, Output string
}

// reporter shows test events as go test shows tests: what a test printed only when it
// failed.
type reporter struct {
	out  io.Writer
	held map[string]map[string]*strings.Builder // output by package and test
}

// read sweeps and shows everything until the end.
func (r *reporter) read(in io.Reader, s *sweeper) error {
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if len(line) > 0 && line[0] == '{' && json.Unmarshal(line, &e) == nil && e.Action != "" {
			s.text("lines of output", strings.TrimPrefix(e.Package+"."+e.Test, "."), []byte(e.Output))
			r.event(e)
		} else if len(line) > 0 {
			s.text("lines of output", "the command", line)
			_, _ = r.out.Write(line) // the terminal has gone if this fails
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *reporter) event(e event) {
	tests := r.held[e.Package]
	switch {
	case e.Action == "build-output":
		fmt.Fprint(r.out, e.Output)
	case e.Action == "output":
		if tests == nil {
			tests = map[string]*strings.Builder{}
			r.held[e.Package] = tests
		}
		if tests[e.Test] == nil {
			tests[e.Test] = &strings.Builder{}
		}
		tests[e.Test].WriteString(e.Output)
	case e.Action == "fail":
		r.show(tests, e.Test)
	case e.Action == "pass" || e.Action == "skip":
		if e.Test != "" {
			delete(tests, e.Test)
			return
		}
		for line := range strings.Lines(textOf(tests, "")) {
			if strings.HasPrefix(line, "ok ") || strings.HasPrefix(line, "?") {
				fmt.Fprint(r.out, line)
			}
		}
		delete(r.held, e.Package)
	}
}

// show prints what a test that failed has said; that of a package comes with all of
// its tests that never ended.
func (r *reporter) show(tests map[string]*strings.Builder, test string) {
	if test == "" {
		for name := range tests {
			if name != "" {
				r.show(tests, name)
			}
		}
	}
	fmt.Fprint(r.out, textOf(tests, test))
	delete(tests, test)
}

func textOf(tests map[string]*strings.Builder, test string) string {
	if b := tests[test]; b != nil {
		return b.String()
	}
	return ""
}
