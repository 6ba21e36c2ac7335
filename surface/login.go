package surface

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/usher-mcp/usher/policy"
)

// loginName is the name of the tool that the direct view adds. It holds no
// separator, so no tool of a server can have it.
const loginName = "login"

var loginTool = []byte(`{"name":"login","title":"Log in to a server","description":"Starts a login to a server that needs one, or completes it. Returns at once with a link for the person; nothing is opened here.","inputSchema":{"type":"object","properties":{"server":{"type":"string","description":"name, name@label or all"},"redirect_url":{"type":"string","description":"Completes a paste login: the address the browser ended on"}},"required":["server"]},"annotations":{"readOnlyHint":false,"destructiveHint":false,"openWorldHint":true}}`)

// login begins a login, or completes it where the browser's address is given, and
// says in Markdown what the person has to do. It never waits for the person.
func (s *Surface) login(ctx context.Context, a Agent, target, redirectURL string) []byte {
	if target == "" {
		return textResult(a, "`server` is missing: give the name of a server, name@label for one account, or all. "+s.serverNames(ctx, a), true)
	}
	if !s.gate.CanLogin() {
		return textResult(a, fmt.Sprintf("Logins cannot be started from here. Ask the person to run: usher login %s", target), true)
	}
	var l Login
	var err error
	if redirectURL != "" {
		l, err = s.gate.CompleteLogin(ctx, a.who, target, redirectURL)
	} else {
		l, err = s.gate.Login(ctx, a.who, target)
	}
	if err != nil {
		return textResult(a, s.loginFailed(ctx, a, target, err), true)
	}
	return textResult(a, loginText(l, target), l.State == "failed")
}

// loginFailed says why a login did not start or complete.
func (s *Surface) loginFailed(ctx context.Context, a Agent, target string, err error) string {
	p := s.Explain(err)
	switch p.Kind {
	case KindUnknownServer:
		var names []string
		for _, srv := range s.gate.Servers(ctx, a.who) {
			names = append(names, label(srv.Name, srv.Account))
		}
		return fmt.Sprintf("No server is named %q%s Use action list_servers.", target, orStop(didYouMean(target, names)))
	case KindUnsupported, KindDenied:
		return fmt.Sprintf("You may not log in to %s. Ask the person to run: usher login %s", target, target)
	}
	return sentence("The login to "+target+" did not start: "+p.Text, p.Next) + " Use action status to see how it stands."
}

// BeginLogin starts a login that an agent's request at a view needs, see
// [policy.Gate.Login].
func (s *Surface) BeginLogin(ctx context.Context, v View, a Agent, target string) (Login, error) {
	return s.gate.Login(ctx, s.caller(v, a), target)
}

// caller is who an agent at a view is for the gate: the view's profile counts.
func (s *Surface) caller(v View, a Agent) policy.Caller {
	if at, ok := v.(interface{ agent(a Agent) Agent }); ok {
		return at.agent(a).who
	}
	return (&endpoint{s: s}).agent(a).who
}

// LoginPending reports whether a login of the agent's principal at target waits for
// the person.
func (s *Surface) LoginPending(ctx context.Context, v View, a Agent, target string) bool {
	all, err := s.gate.LoginStatus(ctx, s.caller(v, a), target)
	return err == nil && slices.ContainsFunc(all, func(l Login) bool { return l.State == "pending" })
}

func orStop(text string) string {
	if text == "" {
		return "."
	}
	return text
}

// loginText is what a client can show to a person.
func loginText(l Login, target string) string {
	if l.Markdown != "" {
		return l.Markdown
	}
	server := l.Server
	if server == "" {
		server = target
	}
	var b strings.Builder
	switch {
	case l.State == "done":
		fmt.Fprintf(&b, "Logged in to **%s**.", server)
	case l.State == "failed":
		fmt.Fprintf(&b, "The login to **%s** failed: %s.", server, l.Reason)
	case l.Flow == "device":
		fmt.Fprintf(&b, "To log in to **%s**, open [%s](%s) and enter the code **%s**.", server, l.URL, l.URL, l.Code)
	case l.Flow == "paste":
		fmt.Fprintf(&b, "To log in to **%s**, open [this link](%s). The browser will end on a page that cannot be loaded: copy its address and use complete_login with it as redirect_url.", server, l.URL)
	default:
		fmt.Fprintf(&b, "To log in to **%s**, open [this link](%s).", server, l.URL)
	}
	if l.State == "pending" {
		b.WriteString("\n\nThe login completes in the background; there is no second message. Use `status` to see the outcome, then repeat what needed it.")
	}
	if l.Handle != "" {
		fmt.Fprintf(&b, "\n\nflow: `%s` · handle: `%s`", l.Flow, l.Handle)
	}
	return b.String()
}

// serverNames lists the servers an agent may name.
func (s *Surface) serverNames(ctx context.Context, a Agent) string {
	var names []string
	for _, srv := range s.gate.Servers(ctx, a.who) {
		names = append(names, label(srv.Name, srv.Account))
	}
	slices.Sort(names)
	return "Servers: " + strings.Join(names, ", ") + "."
}

// sentence joins what went wrong and the next step.
func sentence(text, next string) string {
	text = strings.TrimRight(text, ". ")
	if next == "" || strings.Contains(text, next) {
		return text + "."
	}
	return text + ". Next: " + strings.TrimRight(next, ". ") + "."
}
