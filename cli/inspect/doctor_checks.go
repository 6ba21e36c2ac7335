package inspect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/policy/pins"
	"github.com/usher-mcp/usher/status"
)

// examineSelf looks at what all servers share: files, settings, running instances.
func examineSelf(ctx context.Context, f *cmdutil.Factory, cfg *config.Config) (diagnosis, []status.Report) {
	d := diagnosis{Name: "usher", Address: cmdutil.Version().Number}
	for _, file := range cfg.Files {
		if file.Err == nil {
			d.add(checkOK, "file", "", "%s, %s", f.Short(file.Path), cmdutil.CountOf(file.Servers, "server", "servers"))
		}
		for _, err := range cmdutil.Flatten(file.Err) {
			d.add(checkProblem, "file", "", "%v", f.ShortError(err))
		}
	}
	if len(cfg.Files) == 0 {
		d.add(checkNote, "file", "usher import\nusher add NAME URL", "no configuration yet")
	}
	for _, err := range cmdutil.Flatten(cfg.Usher.Problem) {
		if !slices.ContainsFunc(d.Checks, func(c check) bool { return c.Detail == f.ShortError(err).Error() }) {
			d.add(checkProblem, "settings", "", "%v", f.ShortError(err))
		}
	}
	examineWarnings(f, &d, cfg)
	d.add(checkOK, "store", "", "can be read")
	examineKey(ctx, f, &d)
	peers, err := cmdutil.Running(ctx, f, 0)
	if err != nil {
		d.add(checkProblem, "running", "", "%v", err)
	}
	reports, failed := cmdutil.Reports(ctx, peers)
	for _, err := range failed {
		d.add(checkProblem, "running", "end that process", "%v", err)
	}
	for _, r := range reports {
		d.add(checkOK, "running", "", "pid %d, for %s", r.PID, Spoken(time.Since(r.Started)))
	}
	return d, reports
}

// examineWarnings tells which settings have their defaults, and what else was ignored.
func examineWarnings(f *cmdutil.Factory, d *diagnosis, cfg *config.Config) {
	mistakes := map[config.Warning]bool{}
	for _, m := range cfg.Usher.Mistakes {
		mistakes[m.Warning()] = true
	}
	for _, w := range cfg.Warnings {
		status := checkNote
		if mistakes[w] {
			status = checkProblem
		}
		w.File = f.Short(w.File)
		d.add(status, "settings", "", "%s", w)
	}
}

// examiner looks at servers.
type examiner struct {
	factory *cmdutil.Factory
	host    *app.App
	reports []status.Report
	timeout time.Duration
}

// start examines servers at the same time and returns what comes of each, in order.
func (x *examiner) start(ctx context.Context, cfg *config.Config, names []string) []<-chan diagnosis {
	var out []<-chan diagnosis
	for _, srv := range cfg.Servers {
		if len(names) > 0 && !slices.Contains(names, srv.Name) {
			continue
		}
		ready := make(chan diagnosis, 1)
		go func() { ready <- x.examine(ctx, srv) }() // all are received from
		out = append(out, ready)
	}
	return out
}

// examine walks through what a server needs, and stops where there is no use in
// going on.
func (x *examiner) examine(ctx context.Context, srv config.Server) diagnosis {
	if x.timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, x.timeout)
		defer stop()
	}
	d := diagnosis{Name: srv.Name, Address: cmdutil.ServerAddress(srv.Masked())}
	for _, step := range []func(context.Context, config.Server, *diagnosis) bool{
		x.definition, x.approval, x.rules, x.reach, x.connection, x.pins,
	} {
		if !step(ctx, srv, &d) {
			break
		}
	}
	x.elsewhere(srv, &d)
	return d
}

func (x *examiner) definition(_ context.Context, srv config.Server, d *diagnosis) bool {
	place := "made by a program"
	if srv.Origin.File != "" {
		place = cmdutil.Origin(x.factory, srv.Origin)
	}
	for _, err := range cmdutil.Flatten(srv.Problem) {
		d.add(checkProblem, "definition", "", "%v", x.factory.ShortError(err))
	}
	if srv.Problem != nil {
		return false
	}
	if srv.Disabled {
		d.add(checkNote, "definition", `remove "disabled" to use it`, "%s, disabled", place)
		return false
	}
	d.add(checkOK, "definition", "", "%s", place)
	return true
}

func (x *examiner) approval(ctx context.Context, srv config.Server, d *diagnosis) bool {
	if !srv.NeedsApproval() {
		return true
	}
	approved, err := x.host.Approvals().Approved(ctx, srv.Digest())
	switch {
	case err != nil:
		d.add(checkProblem, "approval", "", "it cannot be read: %v", err)
	case !approved:
		d.add(checkWaiting, "approval", cmdutil.Remedy(x.factory, "usher approve "+srv.Name), "held back: %s", strings.Join(srv.ApprovalReasons(), ", "))
	default:
		d.add(checkOK, "approval", "", "you agreed to this definition")
	}
	return err == nil && approved
}

func (x *examiner) rules(ctx context.Context, srv config.Server, d *diagnosis) bool {
	err := x.host.Allowed(ctx, srv.Name, "")
	if err != nil {
		what, next := x.factory.Explain(err)
		d.add(checkNote, "rules", next, "%s", what)
	}
	return err == nil
}

// reach asks an HTTP server for anything at all, without a credential: every answer
// shows that it is there. The connection tells the rest.
func (x *examiner) reach(ctx context.Context, srv config.Server, d *diagnosis) bool {
	if srv.Transport == config.TransportStdio {
		return true
	}
	resolved, err := x.host.Logins().Target(ctx, x.host.Logins().DefaultAccount(srv.Name))
	if err != nil {
		d.add(checkProblem, "address", cmdutil.HintOf(err), "%s", cmdutil.PlainCause(srv.Name, err))
		return false
	}
	client := &http.Client{Transport: x.host.TransportFor(ctx, srv), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ctx, stop := context.WithTimeout(ctx, srv.Timeouts.Connect)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, resolved.URL, nil)
	if err != nil {
		d.add(checkProblem, "address", "fix url in "+cmdutil.Origin(x.factory, srv.Origin), "%s is not a valid URL", config.Visible(srv.Masked().URL))
		return false
	}
	req.Header.Set("Accept", "text/event-stream")
	began := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		d.add(checkProblem, "address", "look at the address, your network and your proxy settings", "cannot be reached: %v", withoutURL(err))
		return false
	}
	_ = resp.Body.Close() // the status is all that was asked for
	d.add(checkOK, "address", "", "answers HTTP %d in %d ms", resp.StatusCode, time.Since(began).Milliseconds())
	return true
}

// withoutURL is an HTTP client's error without the address, which may hold a
// secret.
func withoutURL(err error) error {
	if cause := errors.Unwrap(err); cause != nil {
		return cause
	}
	return err
}

// connection starts the server and lists its tools.
func (x *examiner) connection(ctx context.Context, srv config.Server, d *diagnosis) bool {
	began := time.Now()
	list, err := x.host.Tools(ctx, srv.Name)
	if err == nil {
		err = list.Problem
	}
	took := time.Since(began).Milliseconds()
	if srv.Transport == config.TransportStdio {
		commandCheck(srv, err, d)
	}
	switch {
	case notThere(err):
		return false
	case err != nil && cmdutil.ExitCode(err) == cmdutil.ExitWaiting:
		x.login(ctx, srv, d)
		d.add(checkWaiting, "login", cmdutil.NextStep(err, "usher login "+srv.Name), "%s", cmdutil.PlainCause(srv.Name, err))
		return false
	case err != nil && ctx.Err() != nil && x.timeout > 0:
		d.add(checkProblem, "connection", "usher logs "+srv.Name, "no answer within %s%s", x.timeout, x.lastWords(ctx, srv, ""))
		return false
	case err != nil:
		d.add(checkProblem, "connection", cmdutil.NextStep(err, ""), "%s%s", cmdutil.PlainCause(srv.Name, err), x.lastWords(ctx, srv, err.Error()))
		return false
	}
	x.token(ctx, srv, d)
	d.add(checkOK, "connection", "", "protocol %s, %d ms", x.version(srv.Name), took)
	d.add(checkOK, "tools", "", "%s", cmdutil.CountOf(len(list.Tools), "tool", "tools"))
	return true
}

// notThere reports whether there is no such program.
func notThere(err error) bool {
	return errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrPermission)
}

func commandCheck(srv config.Server, err error, d *diagnosis) {
	if notThere(err) {
		d.add(checkProblem, "command", "", "%s", cmdutil.PlainCause(srv.Name, err))
		return
	}
	if path, lookErr := exec.LookPath(srv.Command); lookErr == nil {
		d.add(checkOK, "command", "", "%s", path)
	}
}

// lastWords are the last lines a server wrote before it failed, unless they have
// been said.
func (x *examiner) lastWords(ctx context.Context, srv config.Server, said string) string {
	lines, err := x.host.Servers().Logs(context.WithoutCancel(ctx), srv.Name, false)
	if err != nil || srv.Transport != config.TransportStdio {
		return ""
	}
	var last []string
	for l := range lines {
		if last = append(last, cmdutil.Truncate(cmdutil.CleanLine(l.Text), 160)); len(last) > 3 {
			last = last[1:]
		}
	}
	if len(last) == 0 || strings.Contains(said, last[len(last)-1]) {
		return ""
	}
	return "\nlast output: " + strings.Join(last, "\n                ")
}

func (x *examiner) version(name string) string {
	for _, s := range x.host.Status().Servers {
		if s.Name == name && s.ProtocolVersion != "" {
			return s.ProtocolVersion
		}
	}
	return "unknown"
}

func (x *examiner) pins(ctx context.Context, srv config.Server, d *diagnosis) bool {
	if srv.Pins == config.PinsOff {
		d.add(checkNote, "pins", "", "switched off for this server")
		return true
	}
	all, err := x.host.Pins().List(ctx)
	if err != nil {
		d.add(checkProblem, "pins", "", "%v", err)
		return false
	}
	pinned, changed := 0, 0
	for _, p := range all {
		if p.Server != srv.Name {
			continue
		}
		pinned++
		if p.State == pins.StateChanged {
			changed++
		}
	}
	if changed > 0 {
		d.add(checkWaiting, "pins", cmdutil.Remedy(x.factory, fmt.Sprintf("usher pins diff %s\nusher pins accept %[1]s", srv.Name)), "%d of %s changed since pinned", changed, cmdutil.CountOf(pinned, "tool", "tools"))
		return true
	}
	d.add(checkOK, "pins", "", "%s as pinned", cmdutil.CountOf(pinned, "tool", "tools"))
	return true
}

// elsewhere looks at how the server is in the instances that run now.
func (x *examiner) elsewhere(srv config.Server, d *diagnosis) {
	for _, r := range x.reports {
		for _, s := range r.Servers {
			if s.Name != srv.Name || s.Lane != "" {
				continue
			}
			where := fmt.Sprintf("in pid %d", r.PID)
			if s.Account != "" {
				where += " as " + s.Account
			}
			switch {
			case s.Ejected:
				d.add(checkProblem, "running", "usher logs "+srv.Name+"\nusher reload "+srv.Name, "ejected %s after %s: %s", where, cmdutil.CountOf(s.RestartCount, "restart", "restarts"), cmdutil.CleanLine(s.LastError))
			case s.Circuit == "open":
				d.add(checkProblem, "running", "usher reload "+srv.Name, "circuit open %s: %s", where, cmdutil.CleanLine(s.LastError))
			case s.State == host.Connected:
				d.add(checkOK, "running", "", "connected %s", where)
			case s.State == host.Failed:
				d.add(checkNote, "running", "", "failed %s, the next call tries again: %s", where, cmdutil.CleanLine(s.LastError))
			}
		}
	}
}

// examineKey says where the key is and whether it opens the store. Nobody is asked
// for a passphrase.
func examineKey(ctx context.Context, f *cmdutil.Factory, d *diagnosis) {
	h, err := f.Open(ctx)
	if err != nil {
		return // told already
	}
	s, err := h.Keys().Status(ctx)
	if err == nil && s.Setting != "passphrase" {
		err = h.Keys().Unlock(ctx)
	}
	switch {
	case err != nil:
		d.add(checkProblem, "key", cmdutil.HintOf(err), "%v", err)
	case s.Unfinished():
		d.add(checkProblem, "key", "usher key rotate", "a rotation was interrupted; %s", s.Statement())
	case !s.Made:
		d.add(checkNote, "key", "", "%s", s.Statement())
	default:
		d.add(checkOK, "key", "", "%s", s.Statement())
	}
}
