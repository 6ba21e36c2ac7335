package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/clients"
	"github.com/usher-mcp/usher/config/template"
)

// linkedTimeout is how long a client should wait for a call: usher has limits of its
// own for each server, and says which one was too slow.
const linkedTimeout = 5 * time.Minute

// linkedServer is what a client is told: to start this program, or to reach it.
func (a *factory) linkedServer(o linkOptions) (config.Server, error) {
	if o.profile != "" {
		cfg, err := a.config()
		if err != nil {
			return config.Server{}, err
		}
		if _, ok := cfg.Usher.Gateway.Profiles[o.profile]; !ok {
			return config.Server{}, withHint(fmt.Errorf("there is no profile %q", o.profile), "profiles stand in your file under usher.gateway.profiles")
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
	if a.configFile != "" {
		s.Args = append(s.Args, "--config", template.Escape(a.absolute(a.configFile)))
	}
	// A client is started from elsewhere, and has not the variables of this shell.
	if home := a.io.env("USHER_HOME"); home != "" {
		s.Env = map[string]string{"USHER_HOME": template.Escape(a.absolute(home))}
	}
	return s, nil
}

func linkedAddress(o linkOptions) (config.Server, error) {
	url := o.http
	if o.profile != "" {
		base, ok := strings.CutSuffix(url, "/mcp")
		if !ok || strings.Contains(base, "/profiles/") {
			return config.Server{}, usagef("--http http://127.0.0.1:7331/profiles/"+o.profile+"/mcp", "--profile needs an address that ends in /mcp")
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
		return "", withHint(fmt.Errorf("find the path of usher: %w", err), "start it by its full path")
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
func (a *factory) planMoves(w *linking, survey []clients.Presence, o linkOptions) ([]config.Server, error) {
	if o.file != "" {
		return nil, usagef("usher link CLIENT --replace", "--replace moves what stands in the client's own file; leave out --file")
	}
	t, err := a.target(false)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range survey {
		names = append(names, p.Client)
	}
	found, err := clients.Find(a.io.System, names...)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(f clients.Found) bool { return f.Project || f.Err != nil || f.File == t.path })
	if w.imports, err = clients.NewPlan(found, clients.Target{File: t.path}); err != nil {
		return nil, err
	}
	now, err := a.current(t)
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
func (a *factory) moves(p clients.Presence, ours []config.Server) []string {
	found, err := clients.Find(a.io.System, p.Client)
	if err != nil {
		return nil
	}
	for _, f := range found {
		if f.File == p.File && f.Err == nil {
			return clients.Covered(f, ours)
		}
	}
	return nil
}
