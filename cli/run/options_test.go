package run

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/usher-mcp/usher/cli/cmdutil"
)

func TestCallOptions(t *testing.T) {
	f := &cmdutil.Factory{}
	ran := errors.New("ran")
	var got callOptions
	c := newCmdCall(f, func(_ context.Context, o *callOptions) error { got = *o; return ran })
	c.SetArgs([]string{"math", "add", "a=1", "b=2", "--timeout", "90s", "--json"})
	c.SilenceErrors, c.SilenceUsage = true, true
	if err := c.ExecuteContext(t.Context()); !errors.Is(err, ran) {
		t.Fatal(err)
	}
	if got.f != f || got.server != "math" || got.tool != "add" || !slices.Equal(got.words, []string{"a=1", "b=2"}) || got.timeout != 90*time.Second || !got.json || got.out != "." {
		t.Errorf("options are %+v", got)
	}
}

func TestToolsOptions(t *testing.T) {
	for _, test := range []struct {
		args   []string
		server string
		tags   []string
		usage  bool
	}{
		{args: []string{"math"}, server: "math"},
		{args: []string{"--tag", "work"}, tags: []string{"work"}},
		{usage: true},
		{args: []string{"math", "--tag", "work"}, usage: true},
	} {
		var got *toolsOptions
		c := newCmdTools(&cmdutil.Factory{}, func(_ context.Context, o *toolsOptions) error { got = o; return nil })
		c.SetArgs(test.args)
		c.SetErr(io.Discard)
		c.SilenceErrors, c.SilenceUsage = true, true
		err := c.ExecuteContext(t.Context())
		if test.usage {
			if cmdutil.ExitCode(err) != cmdutil.ExitUsage || got != nil {
				t.Errorf("%q: %v", test.args, err)
			}
			continue
		}
		if err != nil || got == nil || got.server != test.server || !slices.Equal(got.tags, test.tags) {
			t.Errorf("%q: %v, options %+v", test.args, err, got)
		}
	}
}
