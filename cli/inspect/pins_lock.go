package inspect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/policy/pins"
)

func newCmdPinsLock(f *cmdutil.Factory, runF func(context.Context, *pinsOptions) error) *cobra.Command {
	o := &pinsOptions{f: f}
	if runF == nil {
		runF = pinsLockRun
	}
	c := &cobra.Command{
		Use: "lock [FILE]", Short: "Write the pins to a file that can be committed", Args: cmdutil.RangeArgs(0, 1),
		Long: `Write the pins of the project's servers to mcp.lock next to the project's file, or
those of all servers to FILE. Everyone who works in the project then gets exactly the
locked tools, and a CI job can check them: usher pins verify.`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.file = args[0]
			}
			return runF(c.Context(), o)
		},
	}
	return c
}

func newCmdPinsVerify(f *cmdutil.Factory, runF func(context.Context, *pinsOptions) error) *cobra.Command {
	o := &pinsOptions{f: f}
	if runF == nil {
		runF = pinsVerifyRun
	}
	c := &cobra.Command{
		Use: "verify [FILE]", Short: "Compare known tools with a lock file, without a connection", Args: cmdutil.RangeArgs(0, 1),
		Long: `Compare the cached tools with mcp.lock next to the project's file, or with FILE. This
starts nothing and connects to nothing; to compare with the servers as they are now,
run usher discover first.

Exit codes: 0 the tools match, 11 they differ, 1 the comparison failed.`,
		Example: `  usher discover && usher pins verify --strict`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.file = args[0]
			}
			return runF(c.Context(), o)
		},
	}
	c.Flags().BoolVar(&o.strict, "strict", false, "a server that was never listed counts as a difference")
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return c
}

// lockFile is the file that was named, else the one beside the project's file.
func lockFile(cfg *config.Config, named string) (string, error) {
	if named != "" {
		return named, nil
	}
	if path := app.LockPath(cfg); path != "" {
		return path, nil
	}
	return "", cmdutil.WithHint(errors.New("there is no project file here to write a lock file next to"), "usher pins lock FILE")
}

// lockedServers are the servers a lock speaks of: the project's, or all when there
// is no project.
func lockedServers(cfg *config.Config) []string {
	project := app.LockPath(cfg) != ""
	var out []string
	for _, s := range cfg.Servers {
		if !project || s.Origin.Layer == config.LayerProject {
			out = append(out, s.Name)
		}
	}
	return out
}

func pinsLockRun(ctx context.Context, o *pinsOptions) error {
	f := o.f
	h, _, err := known(ctx, f)
	if err != nil {
		return err
	}
	path, err := lockFile(h.Config(), o.file)
	if err != nil {
		return err
	}
	servers := lockedServers(h.Config())
	if len(servers) == 0 {
		return errors.New("no server is configured that could be locked")
	}
	lock, err := h.Pins().Lock(ctx, servers...)
	if err != nil {
		return err
	}
	if err := lock.WriteFile(path); err != nil {
		return err
	}
	tools := 0
	for _, locked := range lock.Servers {
		tools += len(locked)
	}
	f.Note("locked %s of %s in %s", cmdutil.CountOf(tools, "tool", "tools"), cmdutil.CountOf(len(lock.Servers), "server", "servers"), f.Short(path))
	var missing []string
	for _, name := range servers {
		if _, ok := lock.Servers[name]; !ok {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		f.Note("not locked, since they were never listed: %s; usher discover, then lock again", strings.Join(missing, ", "))
	}
	return nil
}

func pinsVerifyRun(ctx context.Context, o *pinsOptions) error {
	f := o.f
	h, known, err := known(ctx, f)
	if err != nil {
		return err
	}
	path, err := lockFile(h.Config(), o.file)
	if err != nil {
		return err
	}
	lock, err := pins.ReadLock(path)
	if errors.Is(err, fs.ErrNotExist) {
		return cmdutil.WithHint(fmt.Errorf("there is no lock %s", f.Short(path)), "usher pins lock")
	}
	if err != nil {
		return err
	}
	findings, unknown := compareLock(lock, h.Config(), known)
	if o.json {
		if err := f.PrintJSON(findingsJSON(findings, unknown)); err != nil {
			return err
		}
	} else if err := showFindings(f, findings); err != nil {
		return err
	}
	if len(unknown) > 0 {
		f.Note("not compared, since they were never listed: %s; usher discover asks them", strings.Join(unknown, ", "))
	}
	if len(findings) > 0 || o.strict && len(unknown) > 0 {
		f.Note("%s differs from what is known; %s", f.Short(path), cmdutil.Remedy(f, "usher pins lock takes it as it is"))
		return &cmdutil.SilentError{Code: cmdutil.ExitBlocked}
	}
	f.Note("OK: tools match %s", f.Short(path))
	return nil
}

// compareLock compares a lock with the catalog. Servers of which nothing is known
// are returned apart; one of the project that the lock does not have is a finding.
func compareLock(lock *pins.Lock, cfg *config.Config, known []app.CachedServer) (findings []pins.Finding, unknown []string) {
	current := map[string][][]byte{}
	for _, s := range known {
		if !s.At.IsZero() {
			current[s.Account] = s.Definitions
		}
	}
	findings = lock.Verify(current)
	for _, name := range slices.Sorted(maps.Keys(lock.Servers)) {
		if _, ok := current[name]; !ok {
			unknown = append(unknown, name)
		}
	}
	for _, name := range lockedServers(cfg) {
		if _, locked := lock.Servers[name]; !locked {
			findings = append(findings, pins.Finding{Server: name, Kind: pins.StateNew, Detail: "the server is not in the lock"})
		}
	}
	return findings, unknown
}

func showFindings(f *cmdutil.Factory, findings []pins.Finding) error {
	for _, finding := range findings {
		if _, err := fmt.Fprintln(f.IO.Out, cmdutil.CleanLine(finding.String())); err != nil {
			return err
		}
		for _, c := range finding.Changes {
			if _, err := fmt.Fprintln(f.IO.Out, cmdutil.Indent(cmdutil.Clean(c.String()), "  ")); err != nil {
				return err
			}
		}
	}
	return nil
}

// findingsJSON is the shape of usher pins verify --json.
func findingsJSON(findings []pins.Finding, unknown []string) any {
	type finding struct {
		Server string `json:"server"`
		Tool   string `json:"tool,omitempty"`
		Kind   string `json:"kind"`
		Detail string `json:"detail,omitempty"`
	}
	out := []finding{}
	for _, f := range findings {
		out = append(out, finding{f.Server, f.Tool, f.Kind, f.Detail})
	}
	if unknown == nil {
		unknown = []string{}
	}
	return map[string]any{"findings": out, "not_compared": unknown}
}
