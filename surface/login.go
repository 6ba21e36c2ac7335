package surface

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// loginName is the name of the tool that the direct view adds. It holds no
// separator, so no tool of a server can have it.
const loginName = "login"

var loginTool = []byte(`{"name":"login","title":"Log in to a server","description":"Starts a login to a server that needs one, or completes it. Returns at once with a link for the person; nothing is opened here.","inputSchema":{"type":"object","properties":{"server":{"type":"string","description":"name, name@label or all"},"redirect_url":{"type":"string","description":"Completes a paste login: the address the browser ended on"}},"required":["server"]},"annotations":{"readOnlyHint":false,"destructiveHint":false,"openWorldHint":true}}`)

// login begins a login, or completes it where the browser's address is given, and
// says in Markdown what the person has to do. It never waits for the person.
func (s *Surface) login(ctx context.Context, a Agent, target, redirectURL string) []byte {
	if target == "" {
		return textResult(a, "`server` is missing: give the name of a server, name@label for one account, or all. "+s.serverNames(a), true)
	}
	if s.opt.Logins == nil {
		return textResult(a, fmt.Sprintf("Logins cannot be started from here. Ask the person to run: usher login %s", target), true)
	}
	var l Login
	var err error
	if redirectURL != "" {
		l, err = s.opt.Logins.Complete(ctx, a.Principal, target, redirectURL)
	} else {
		if problem := s.checkTarget(a, target); problem != "" {
			return textResult(a, problem, true)
		}
		l, err = s.opt.Logins.Begin(ctx, a.Principal, target)
	}
	if err != nil {
		p := s.Explain(err)
		return textResult(a, sentence("The login to "+target+" did not start: "+p.Text, p.Next)+" Use action status to see how it stands.", true)
	}
	return textResult(a, l.markdown(target), l.State == "failed")
}

// checkTarget says what is wrong with the name of a server, "" when nothing is.
func (s *Surface) checkTarget(a Agent, target string) string {
	if target == "all" {
		return ""
	}
	name, _, _ := strings.Cut(target, "@")
	sel := selection{servers: a.Servers}
	var names []string
	for _, srv := range s.opt.Hosted.Servers(a.Principal) {
		if !sel.server(srv.Name, srv.Account) {
			continue
		}
		if srv.Name == name {
			return ""
		}
		names = append(names, srv.Name)
	}
	return fmt.Sprintf("No server is named %q%s Use action list_servers.", name, orStop(didYouMean(name, names)))
}

func orStop(text string) string {
	if text == "" {
		return "."
	}
	return text
}

// markdown is what a client can show to a person.
func (l Login) markdown(target string) string {
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
func (s *Surface) serverNames(a Agent) string {
	sel := selection{servers: a.Servers}
	var names []string
	for _, srv := range s.opt.Hosted.Servers(a.Principal) {
		if sel.server(srv.Name, srv.Account) {
			names = append(names, label(srv.Name, srv.Account))
		}
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
