package policy

import (
	"context"
	"errors"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
)

// Logins starts and completes logins for a [Gate]. Nothing of it waits for a person
// or opens a browser.
type Logins interface {
	// Begin starts a login for an account and returns at once; the rest happens in
	// the background.
	Begin(ctx context.Context, k Key) (Login, error)
	// BeginAll starts logins for those of a principal's accounts that need one, many
	// at once, and returns one login for each of these; the rest happens in the
	// background.
	BeginAll(ctx context.Context, principal string, keys []Key) ([]Login, error)
	// Complete redeems the URL that the browser was sent to, if it belongs to a
	// pending login of the principal for which may is true. Nothing is redeemed
	// otherwise, and the error is that of an unknown login.
	Complete(ctx context.Context, principal string, may func(server, account string) bool, redirectURL string) (Login, error)
	// Status returns the logins of a principal, also those that have ended.
	Status(ctx context.Context, principal string) ([]Login, error)
}

// ErrNoLogins: logins cannot be started from here; see [Options].
var ErrNoLogins = errors.New("logins cannot be started from here")

// Login is the state of a login. Its JSON form is part of what agents read.
type Login struct {
	Server string `json:"server"` // "name" or "name@label"
	// Flow is what the person has to do: "browser", "paste" or "device"; empty when
	// nothing is left to do.
	Flow string `json:"flow,omitempty"`
	// State is "preparing" (until its URL is known), "pending", "done" or "failed".
	State string `json:"state"`
	// Handle names this login; it proves nothing.
	Handle string `json:"handle,omitempty"`
	URL    string `json:"url,omitempty"`
	Code   string `json:"code,omitempty"` // device flow
	// Expires is when it is given up.
	Expires time.Time `json:"expires,omitzero"`
	// Markdown is the same for a person, in full. Empty: it is made from the rest.
	Markdown string `json:"-"`
	Reason   string `json:"reason,omitempty"` // of failed
	// Paste is how a user completes a login with Flow "paste", one sentence. The caller
	// that knows what the user can do fills it in.
	Paste string `json:"-"`
	// Logins are those of a login to "all".
	Logins []Login `json:"logins,omitempty"`
}

// The states of a Login.
const (
	LoginPreparing = "preparing"
	LoginPending   = "pending"
	LoginDone      = "done"
	LoginFailed    = "failed"
)

// The flows of a Login.
const (
	FlowBrowser = "browser"
	FlowPaste   = "paste"
	FlowDevice  = "device"
)

// CanLogin reports whether logins can be started from here at all.
func (g *Gate) CanLogin() bool { return g.opt.Logins != nil }

// methodLogin is what audit records call a login that a caller asked for.
const methodLogin = "login"

// Login starts a login at "server" or "server@label", or at every server that needs
// one with "all", and returns at once. The account need not exist yet; the server
// must exist as a whole for the caller.
func (g *Gate) Login(ctx context.Context, c Caller, target string) (Login, error) {
	if target == "all" {
		return g.loginAll(ctx, c)
	}
	k, err := g.mayLogin(ctx, &c, target)
	if err != nil {
		return Login{}, err
	}
	if g.opt.Logins == nil {
		return Login{}, ErrNoLogins
	}
	return g.opt.Logins.Begin(ctx, k)
}

// mayLogin decides whether a caller may log in at a target.
func (g *Gate) mayLogin(ctx context.Context, c *Caller, target string) (Key, error) {
	server, label, err := config.ParseAccount(target)
	if err != nil {
		return Key{}, err
	}
	k := c.own(Key{Server: server, Account: label})
	bare := k
	bare.Account = ""
	if !g.exists(ctx, bare, g.accounts.find(bare)) {
		return Key{}, g.unknownServer(c, k, false)
	}
	_, err = g.allowExisting(ctx, c, k, needWhole, "", g.accounts.find(k))
	if err != nil {
		g.refused(c, k, methodLogin, "", err)
	}
	return k, err
}

// loginAll starts a login at every server that exists for the caller and needs one.
func (g *Gate) loginAll(ctx context.Context, c Caller) (Login, error) {
	if g.opt.Logins == nil {
		return Login{}, ErrNoLogins
	}
	done := Login{Server: "all", State: LoginDone}
	keys := g.mayNeedLogin(ctx, c)
	if len(keys) == 0 {
		return done, nil
	}
	all, err := g.opt.Logins.BeginAll(ctx, c.principal(), keys)
	if err != nil || len(all) == 0 {
		return done, err
	}
	return Login{Server: "all", State: LoginPending, Logins: all}, nil
}

// mayNeedLogin lists the accounts that exist as a whole for the caller and whose
// servers may want a login: not those that are connected or logged in.
func (g *Gate) mayNeedLogin(ctx context.Context, c Caller) []Key {
	states := map[string]ServerStatus{}
	for _, s := range g.Status(ctx, c, "") {
		states[scopeName(s.Name, s.Account)] = s
	}
	var keys []Key
	for _, srv := range g.Servers(ctx, c) {
		s := states[scopeName(srv.Name, srv.Account)]
		works := s.State == host.Connected || s.Auth.State == host.AuthOK
		if srv.Off || srv.Transport == string(config.TransportStdio) || works && !s.Auth.NeedsLogin() {
			continue
		}
		k := c.own(Key{Server: srv.Name, Account: srv.Account})
		if _, err := g.allow(ctx, &c, k, needWhole, ""); err == nil {
			keys = append(keys, k)
		}
	}
	return keys
}

// CompleteLogin completes a pending login of the caller's principal with the URL
// that the browser was sent to. It must be for the target, and the server must exist
// as a whole for the caller; nothing is redeemed otherwise.
func (g *Gate) CompleteLogin(ctx context.Context, c Caller, target, redirectURL string) (Login, error) {
	k, err := g.mayLogin(ctx, &c, target)
	if err != nil {
		return Login{}, err
	}
	if g.opt.Logins == nil {
		return Login{}, ErrNoLogins
	}
	may := func(server, account string) bool { return server == k.Server && account == k.Account }
	return g.opt.Logins.Complete(ctx, k.Principal, may, redirectURL)
}

// LoginStatus returns the logins of the caller's principal at servers that exist for
// the caller, or at one of them.
func (g *Gate) LoginStatus(ctx context.Context, c Caller, target string) ([]Login, error) {
	if g.opt.Logins == nil {
		return nil, nil
	}
	all, err := g.opt.Logins.Status(ctx, c.principal())
	var out []Login
	for _, l := range all {
		server, label := config.SplitAccount(l.Server)
		if target != "" && target != l.Server {
			continue
		}
		if g.showsLogin(ctx, &c, c.own(Key{Server: server, Account: label})) {
			out = append(out, l)
		}
	}
	return out, err
}

// showsLogin reports whether a caller may see the logins of an account of its
// principal. The account need not exist: a login that failed made none.
func (g *Gate) showsLogin(ctx context.Context, c *Caller, k Key) bool {
	bare := k
	bare.Account = ""
	if !g.exists(ctx, bare, g.accounts.find(bare)) {
		return false
	}
	_, err := g.allowExisting(ctx, c, k, needWhole, "", g.accounts.find(k))
	return err == nil
}
