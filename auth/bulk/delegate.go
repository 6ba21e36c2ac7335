package bulk

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/config"
)

// EngineOptions steer the engine of [NewEngine]. The zero value works.
type EngineOptions struct {
	// Principal is whose waiting logins are listed. Default: everybody's.
	Principal string
	// Where says which process this is, for people who look at waiting logins.
	Where string
	// Scopes are asked for beside those that are chosen anyway.
	Scopes []string
}

// NewEngine returns the real engine: a thin delegate to e, which stays the caller's.
func NewEngine(e *auth.Engine, options *EngineOptions) Engine {
	l := live{e: e}
	if options != nil {
		l.opt = *options
	}
	return l
}

type live struct {
	e   *auth.Engine
	opt EngineOptions
}

// Standing asks the store, and the authorization server only if the grant is due.
func (l live) Standing(ctx context.Context, t Target) (Standing, error) {
	s, err := l.e.Status(ctx, t.Account)
	if err != nil {
		return Standing{}, err
	}
	out := Standing{Stored: s.Generation > 0, Issuer: s.Issuer}
	if s.State != auth.StateOK {
		return out, nil
	}
	// Whether a request could be made now is found out by preparing one.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.Server.URL, nil)
	if err != nil {
		return out, err
	}
	err = l.e.Authorize(ctx, t.Account, &t.Server, req)
	if auth.NeedsPerson(err) {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	return l.stillGood(ctx, t, out)
}

// stillGood makes sure that a token which was due has been renewed: where that is not
// possible right now, the engine goes on with the old one and lets the server decide.
func (l live) stillGood(ctx context.Context, t Target, out Standing) (Standing, error) {
	s, err := l.e.Status(ctx, t.Account)
	if err != nil {
		return out, err
	}
	if !s.Expires.IsZero() && !time.Now().Before(s.Expires) {
		return out, fmt.Errorf("renew the login of %s: %w: %s; it is kept, try again later", t.Account, auth.ErrUnavailable, s.Trouble)
	}
	out.Usable = s.State == auth.StateOK
	return out, nil
}

func (l live) Alone(ctx context.Context, t Target, f func(context.Context) error) error {
	return l.e.Alone(ctx, t.Account, f)
}

// Begin prefers a device code if asked to and if there is one to be had.
func (l live) Begin(ctx context.Context, t Target, r Redirect, resolved func()) (auth.Pending, error) {
	opt := &auth.LoginOptions{Redirect: r.URI, Listen: r.Listen, Scopes: l.opt.Scopes, Where: l.opt.Where}
	if len(r.Courier) > 0 {
		opt.Loopback = r.Courier[0]
	}
	deviceOnly := t.Server.OAuth != nil && t.Server.OAuth.Grant == config.GrantDeviceCode
	p, err := l.begin(ctx, t, r.Device || deviceOnly, opt)
	if err == nil {
		resolved()
		return *p, nil
	}
	var te *auth.TokenError
	if errors.As(err, &te) || errors.Is(err, auth.ErrNoClient) {
		resolved() // only a server that was found can refuse
		if l.open(ctx, t, opt) {
			return auth.Pending{}, ErrNotNeeded
		}
	}
	return auth.Pending{}, err
}

// begin prefers a code on another screen if device says so, and has another way where
// the server has only that.
func (l live) begin(ctx context.Context, t Target, device bool, opt *auth.LoginOptions) (*auth.Pending, error) {
	if device {
		p, err := l.e.BeginDevice(ctx, t.Account, t.Server, opt)
		if !errors.Is(err, auth.ErrNoFlow) && !errors.Is(err, auth.ErrRefused) && !errors.Is(err, auth.ErrNoClient) {
			return p, err
		}
	}
	p, err := l.e.Begin(ctx, t.Account, t.Server, opt)
	if !device && errors.Is(err, auth.ErrNoFlow) {
		if d, derr := l.e.BeginDevice(ctx, t.Account, t.Server, opt); derr == nil {
			return d, nil
		}
	}
	return p, err
}

// open reports whether a server neither asks for a login nor says anything about one.
func (l live) open(ctx context.Context, t Target, opt *auth.LoginOptions) bool {
	x, err := l.e.Explain(ctx, t.Account, t.Server, &auth.LoginOptions{Redirect: opt.Redirect})
	return err == nil && x.Challenge.Status == 0 && x.ResourceMetadata == "" && x.Metadata == "" && t.Server.OAuth == nil
}

// Complete finishes logins of the principal only, if there is one.
func (l live) Complete(ctx context.Context, cb auth.Callback) (*auth.Login, error) {
	if l.opt.Principal != "" {
		cb.Principal = l.opt.Principal
	}
	return l.e.Complete(ctx, cb)
}

// Paste finishes logins of the principal only, if there is one.
func (l live) Paste(ctx context.Context, state, text string) (*auth.Login, error) {
	return l.e.PasteFor(ctx, state, text, func(a auth.Account) bool {
		return l.opt.Principal == "" || normal(a).Principal == l.opt.Principal
	})
}

// Wait polls for a device code and listens for everything else.
func (l live) Wait(ctx context.Context, p auth.Pending) (*auth.Login, error) {
	wait := l.e.Wait
	if p.Device != nil {
		wait = l.e.PollDevice
	}
	login, err := wait(ctx, p.State)
	if !errors.Is(err, auth.ErrUnknownState) {
		return login, err
	}
	// Another process may have finished it before this one began to wait.
	if login, _ := l.e.Obtained(ctx, &p); login != nil {
		return login, nil
	}
	return nil, err
}

func (l live) Waiting(ctx context.Context) ([]auth.Pending, error) {
	return l.e.Pendings(ctx, l.opt.Principal)
}

func (l live) Cancel(ctx context.Context, state string) error { return l.e.Cancel(ctx, state) }

// leastLife is how long a login must still have to be worth joining.
const leastLife = 2 * time.Minute

// Joinable wants the same way back, and somebody who listens there if that is how
// the answer comes.
func (l live) Joinable(ctx context.Context, p auth.Pending, r Redirect) bool {
	switch {
	case time.Until(p.Expires) < leastLife:
		return false
	case p.Device != nil:
		return r.Device
	case r.URI != "" && r.URI != p.RedirectURI:
		return false
	case len(r.Courier) > 0:
		return slices.ContainsFunc(r.Courier, func(at string) bool { return oneName(at) == oneName(p.RedirectURI) })
	case r.Listen:
		return answered(ctx, p.RedirectURI)
	}
	return true
}

// oneName writes a loopback address with the one name that all its names stand for:
// some providers take the other one only.
func oneName(address string) string {
	return strings.Replace(address, "http://localhost:", "http://127.0.0.1:", 1)
}

// Where a listener of usher says that it is one.
const (
	identityPath   = "/.well-known/usher-callback"
	identityHeader = "Usher-Callback"
)

// answerLimit is how long a listener may take to say so: on a busy machine a second is
// little, and a process that is taken for dead has its login begun twice.
const answerLimit = 3 * time.Second

// answered reports whether a process of usher listens at a loopback address.
func answered(ctx context.Context, redirect string) bool {
	u, err := url.Parse(redirect)
	if err != nil || u.Scheme != "http" {
		return false
	}
	if ip, err := netip.ParseAddr(u.Hostname()); u.Hostname() != "localhost" && (err != nil || !ip.IsLoopback()) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	place := url.URL{Scheme: u.Scheme, Host: u.Host, Path: identityPath}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, place.String(), nil)
	if err != nil {
		return false
	}
	t := &http.Transport{DisableKeepAlives: true}
	resp, err := t.RoundTrip(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.Header.Get(identityHeader) != ""
}
