package setup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/clients"
	"github.com/usher-mcp/usher/config/template"
)

// linkedTimeout is how long a client should wait for a call: usher has limits of its
// own for each server, and says which one was too slow.
const linkedTimeout = 5 * time.Minute

// linkedServer is what a client is told: to start this program, or to reach it.
func linkedServer(f *cmdutil.Factory, o *linkOptions) (config.Server, error) {
	if o.profile != "" {
		cfg, err := f.Config()
		if err != nil {
			return config.Server{}, err
		}
		if _, ok := cfg.Usher.Gateway.Profiles[o.profile]; !ok {
			return config.Server{}, cmdutil.WithHint(fmt.Errorf("there is no profile %q", o.profile), "define profiles in your file under usher.gateway.profiles")
		}
	}
	if o.http != "" {
		return linkedAddress(o)
	}
	program, err := thisProgram()
	if err != nil {
		return config.Server{}, err
	}
	s := config.Server{Transport: config.TransportStdio, Command: template.Escape(program), Args: []string{"serve"}}
	s.Timeouts.Call = linkedTimeout
	if o.profile != "" {
		s.Args = append(s.Args, "--profile", template.Escape(o.profile))
	}
	if f.ConfigFile != "" {
		s.Args = append(s.Args, "--config", template.Escape(absolute(f, f.ConfigFile)))
	}
	// A client is started from elsewhere, and has not the variables of this shell.
	if home := f.IO.Env("USHER_HOME"); home != "" {
		s.Env = map[string]string{"USHER_HOME": template.Escape(absolute(f, home))}
	}
	return s, nil
}

func linkedAddress(o *linkOptions) (config.Server, error) {
	url := o.http
	if o.profile != "" {
		base, ok := strings.CutSuffix(url, "/mcp")
		if !ok || strings.Contains(base, "/profiles/") {
			return config.Server{}, cmdutil.Usagef("--http http://127.0.0.1:7331/profiles/"+o.profile+"/mcp", "--profile needs an address that ends in /mcp")
		}
		url = base + "/profiles/" + o.profile + "/mcp"
	}
	s := config.Server{Transport: config.TransportHTTP, URL: template.Escape(url)}
	s.Timeouts.Call = linkedTimeout
	if o.tokenEnv != "" {
		s.Headers = map[string]string{"Authorization": "Bearer ${env:" + o.tokenEnv + "}"}
	}
	return s, nil
}

// thisProgram is the absolute path of usher: the one that the search path finds if
// that is the same file, since it outlives an upgrade of what it points at.
func thisProgram() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", cmdutil.WithHint(fmt.Errorf("find the path of usher: %w", err), "start it by its full path")
	}
	found, err := exec.LookPath("usher")
	if err != nil {
		return self, nil
	}
	if found, err = filepath.Abs(found); err != nil {
		return self, nil
	}
	a, errA := os.Stat(found)
	b, errB := os.Stat(self)
	if errA == nil && errB == nil && os.SameFile(a, b) {
		return found, nil
	}
	return self, nil
}

// planMoves plans the import of what the clients have of their own, and returns the
// servers that usher has then.
func planMoves(f *cmdutil.Factory, w *linking, survey []clients.Presence, o *linkOptions) ([]config.Server, error) {
	if o.file != "" {
		return nil, cmdutil.Usagef("usher link CLIENT --replace", "--replace moves the servers in the client's own file; leave out --file")
	}
	t, err := cmdutil.ChooseTarget(f, false)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range survey {
		names = append(names, p.Client)
	}
	found, err := clients.Find(f.IO.System, names...)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(src clients.Found) bool { return src.Project || src.Err != nil || src.File == t.Path })
	if w.imports, err = clients.NewPlan(found, clients.Target{File: t.Path}); err != nil {
		return nil, err
	}
	now, err := cmdutil.ReadTarget(f, t)
	if err != nil {
		return nil, err
	}
	ours := slices.Clone(now.Servers)
	for _, n := range w.imports.Add {
		ours = append(ours, n.Server)
	}
	return ours, nil
}

// moves are the entries of a client's file that stand for servers of usher.
func moves(f *cmdutil.Factory, p clients.Presence, ours []config.Server) []string {
	found, err := clients.Find(f.IO.System, p.Client)
	if err != nil {
		return nil
	}
	for _, src := range found {
		if src.File == p.File && src.Err == nil {
			return clients.Covered(src, ours)
		}
	}
	return nil
}
