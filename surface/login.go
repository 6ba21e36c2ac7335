package surface

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/surface/internal/naming"
	"github.com/usher-mcp/usher/surface/internal/result"
)

// loginName is the name of a tool that the direct view adds. It holds no separator,
// so no tool of a server can have it.
const loginName = "login"

var loginTool = []byte(`{"name":"login","title":"Log in to a server","description":"Starts a login to a server that needs one, or completes it. Returns at once with a link or a code for the person; nothing is opened here.","inputSchema":{"type":"object","properties":{"server":{"type":"string","description":"name, name@label or all"},"redirect_url":{"type":"string","description":"Completes a paste login: the address the browser ended on"}},"required":["server"]},"annotations":{"readOnlyHint":false,"destructiveHint":false,"openWorldHint":true}}`)

// login begins a login, or completes it where the browser's address is given, and
// says in Markdown what the person has to do. It never waits for the person.
func (s *Surface) login(ctx context.Context, a Agent, target, redirectURL string) []byte {
	if target == "" {
		return result.Text(a.Version, "`server` is missing: give the name of a server, name@label for one account, or all. "+s.serverNames(ctx, a), true)
	}
	if !s.gate.CanLogin() {
		return result.Text(a.Version, fmt.Sprintf("Logins cannot be started from here. Ask the person to run: usher login %s", target), true)
	}
	var l Login
	var err error
	if redirectURL != "" {
		l, err = s.gate.CompleteLogin(ctx, a.who, target, redirectURL)
	} else {
		l, err = s.gate.Login(ctx, a.who, target)
	}
	if err != nil {
		return result.Text(a.Version, s.loginFailed(ctx, a, target, redirectURL != "", err), true)
	}
	return result.Text(a.Version, loginText(l, target, a.at.hints), l.State == policy.LoginFailed)
}

// loginFailed says why a login did not start or complete.
func (s *Surface) loginFailed(ctx context.Context, a Agent, target string, completing bool, err error) string {
	p := s.Explain(err)
	switch p.Kind {
	case KindUnknownServer:
		var names []string
		for _, srv := range s.gate.Servers(ctx, a.who) {
			names = append(names, naming.Label(srv.Name, srv.Account))
		}
		return fmt.Sprintf("No server is named %q%s %s", target, orStop(didYouMean(target, names)), a.at.hints.names)
	case KindUnsupported, KindDenied:
		return fmt.Sprintf("You may not log in to %s. Ask the person to run: usher login %s", target, target)
	}
	verb := "start"
	if completing {
		verb = "complete"
	}
	return strings.TrimSpace(sentence(fmt.Sprintf("The login to %s did not %s: %s", target, verb, p.Text), p.Next) + " " + a.at.hints.status)
}

// BeginLogin starts a login that an agent's request at a view needs, see
// [policy.Gate.Login]. What the person has to do is told in words that fit the view.
func (s *Surface) BeginLogin(ctx context.Context, at View, a Agent, target string) (Login, error) {
	e := s.endpointOf(at)
	l, err := s.gate.Login(ctx, e.agent(a).who, target)
	if err == nil && l.State == policy.LoginPending && l.URL != "" {
		l.Markdown, l.Paste = loginSteps(&l, e.hints), e.hints.paste
	}
	return l, err
}

// endpointOf is what a view has in common with others.
func (s *Surface) endpointOf(v View) *endpoint {
	switch v := v.(type) {
	case *meta:
		return &v.endpoint
	case *direct:
		return &v.endpoint
	case *single:
		return &v.endpoint
	}
	return &endpoint{s: s, hints: &singleHints}
}

// LoginPending reports whether a login of the agent's principal at target waits for
// the person.
func (s *Surface) LoginPending(ctx context.Context, at View, a Agent, target string) bool {
	all, err := s.gate.LoginStatus(ctx, s.endpointOf(at).agent(a).who, target)
	return err == nil && slices.ContainsFunc(all, func(l Login) bool { return l.State == policy.LoginPending })
}

func orStop(text string) string {
	if text == "" {
		return "."
	}
	return text
}

// loginText is what a client can show to a person.
func loginText(l Login, target string, h *hints) string {
	if l.Server == "" {
		l.Server = target
	}
	switch {
	case l.Markdown != "":
		return l.Markdown
	case l.Server == "all":
		return loginAllText(&l, h)
	case l.State == policy.LoginDone:
		return fmt.Sprintf("Logged in to **%s**.", l.Server)
	case l.State == policy.LoginFailed:
		return fmt.Sprintf("The login to **%s** failed: %s.", l.Server, l.Reason)
	}
	text := loginSteps(&l, h) + "\n\n" + inBackground(h)
	if l.Handle != "" {
		text += fmt.Sprintf("\n\nflow: `%s` · handle: `%s`", l.Flow, l.Handle)
	}
	return text
}

func inBackground(h *hints) string {
	return "The login completes in the background; there is no second message. " + h.status + " Then repeat what needed it."
}

// loginSteps says what a person has to do for a pending login. The address also
// stands alone on a line, for clients that do not show Markdown.
func loginSteps(l *Login, h *hints) string {
	switch l.Flow {
	case policy.FlowDevice:
		return fmt.Sprintf("To log in to **%s**, open [this page](%s) and enter the code **%s**.\n\n%s", l.Server, linkTarget(l.URL), l.Code, l.URL)
	case policy.FlowPaste:
		return fmt.Sprintf("To log in to **%s**, open [this link](%s).\n\n%s\n\nThe browser may end on a page that cannot be loaded: then copy its address and %s.",
			l.Server, linkTarget(l.URL), l.URL, h.toComplete(l.Server))
	}
	return fmt.Sprintf("To log in to **%s**, open [this link](%s).\n\n%s", l.Server, linkTarget(l.URL), l.URL)
}

// linkTarget is a URL that cannot end the Markdown link it stands in.
func linkTarget(url string) string { return strings.NewReplacer("(", "%28", ")", "%29").Replace(url) }

// loginAllText says what became of each server of a login to all.
func loginAllText(l *Login, h *hints) string {
	if len(l.Logins) == 0 {
		return "No server needs a login."
	}
	var b strings.Builder
	paste := ""
	pending := false
	for i := range l.Logins {
		one := &l.Logins[i]
		pending = pending || one.State == policy.LoginPending || one.State == policy.LoginPreparing
		if one.State == policy.LoginPending && one.Flow == policy.FlowPaste && paste == "" {
			paste = one.Server
		}
		b.WriteString(loginLine(one))
	}
	text := strings.TrimSuffix(b.String(), "\n")
	if !pending {
		return text
	}
	text = "Open these, in any order:\n\n" + text
	if paste != "" {
		text += fmt.Sprintf("\n\nThe browser may end on a page that cannot be loaded: then copy its address and %s (for %s).", h.toComplete(paste), paste)
	}
	return text + "\n\n" + inBackground(h)
}

// loginLine is one server in a login to all.
func loginLine(l *Login) string {
	switch {
	case l.State == policy.LoginDone:
		return fmt.Sprintf("- **%s**: logged in\n", l.Server)
	case l.State == policy.LoginFailed:
		return fmt.Sprintf("- **%s**: failed: %s\n", l.Server, l.Reason)
	case l.State == policy.LoginPreparing:
		return fmt.Sprintf("- **%s**: its authorization server has not answered yet\n", l.Server)
	case l.Flow == policy.FlowDevice:
		return fmt.Sprintf("- **%s**: open [this page](%s) and enter the code **%s**\n  %s\n", l.Server, linkTarget(l.URL), l.Code, l.URL)
	}
	return fmt.Sprintf("- **%s**: [log in](%s)\n  %s\n", l.Server, linkTarget(l.URL), l.URL)
}

// serverNames lists the servers an agent may name.
func (s *Surface) serverNames(ctx context.Context, a Agent) string {
	var names []string
	for _, srv := range s.gate.Servers(ctx, a.who) {
		names = append(names, naming.Label(srv.Name, srv.Account))
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
