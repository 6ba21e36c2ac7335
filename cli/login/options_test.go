package login

import (
	"context"
	"testing"

	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/cli/cmdutil"
)

// The flags of login decide how it logs in.
func TestLoginOptions(t *testing.T) {
	for _, test := range []struct {
		args            []string
		mode            bulk.Mode
		many, near, far bool
		usage           bool
	}{
		{args: []string{"notes"}},
		{args: []string{"notes", "--json"}, mode: bulk.ModeAll, many: true},
		{args: []string{"--missing"}, mode: bulk.ModeMissing, many: true},
		{args: []string{"--tag", "work"}, mode: bulk.ModeMissing, many: true},
		{args: []string{"--missing", "--courier", "ssh"}, mode: bulk.ModeMissing, many: true, near: true},
		{args: []string{"--courier-far"}, far: true},
		{usage: true},
		{args: []string{"--missing", "--all"}, usage: true},
	} {
		var got *loginOptions
		c := newCmdLogin(&cmdutil.Factory{}, func(_ context.Context, o *loginOptions) error { got = o; return nil })
		c.SetArgs(test.args)
		c.SilenceErrors, c.SilenceUsage = true, true
		err := c.ExecuteContext(t.Context())
		if test.usage {
			if cmdutil.ExitCode(err) != cmdutil.ExitUsage || got != nil {
				t.Errorf("%q: %v", test.args, err)
			}
			continue
		}
		if err != nil || got == nil {
			t.Errorf("%q: %v", test.args, err)
			continue
		}
		if got.many != test.many || got.near != test.near || got.far != test.far || test.many && got.mode != test.mode {
			t.Errorf("%q: options %+v", test.args, got)
		}
	}
}
