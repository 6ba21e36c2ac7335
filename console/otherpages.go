package console

import (
	"context"
	"strings"
	"time"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/status"
)

// pinView is a tool that waits for approval.
type pinView struct {
	Pin
	ID    string
	Shown string
	Seen  string
}

type pinsPage struct {
	Pins    []pinView
	Problem string
}

func (c *Console) pinsPage(v *screen, pins []Pin, err error) {
	v.Title, v.Nav, v.body = "Pins", "pins", "pins"
	var p pinsPage
	if err != nil {
		p.Problem = err.Error()
	}
	for _, x := range pins {
		hidden := make([]string, len(x.Hidden))
		for i, member := range x.Hidden {
			hidden[i] = plain(member)
		}
		x.Hidden = hidden // x is a copy, its slices are not
		p.Pins = append(p.Pins, pinView{Pin: x, Shown: plain(x.Server + "/" + x.Tool), ID: id("p", x.Server+"/"+x.Tool), Seen: ago(v.now, x.Since)})
	}
	v.Page = p
}

// accountView is a login in a list.
type accountView struct {
	auth.Status
	Name  string // server, or server@label
	ID    string
	Words string
	Slug  string
	Since string
	Asked string // the scopes
}

type accountsPage struct {
	Accounts []accountView
	Problem  string
}

func (c *Console) accountsPage(ctx context.Context, v *screen) {
	v.Title, v.Nav, v.body = "Accounts", "accounts", "accounts"
	var p accountsPage
	list, err := c.world.Accounts(ctx)
	if err != nil {
		p.Problem = err.Error()
	}
	for _, a := range list {
		a.Issuer, a.Reason, a.Trouble = plain(a.Issuer), plain(a.Reason), plain(a.Trouble)
		p.Accounts = append(p.Accounts, accountView{
			Status: a, Name: a.Account.String(), ID: id("a", a.Account.String()), Words: loginWords(&a, v.now), Slug: strings.ReplaceAll(string(a.State), "_", "-"),
			Since: ago(v.now, a.Obtained), Asked: plain(strings.Join(a.Scopes, " ")),
		})
	}
	v.Page = p
}

// loginWords says how a login stands.
func loginWords(a *auth.Status, now time.Time) string {
	switch a.State {
	case auth.StateOK:
		words := "logged in"
		if !a.Expires.IsZero() {
			words += ", " + status.Approx(a.Expires.Sub(now)) + " left"
		}
		if a.CanRefresh {
			words += ", refreshes"
		}
		return words
	case auth.StatePending:
		return "waits for your consent"
	case auth.StateNeedsLogin:
		return "needs a login"
	}
	return "no login"
}

// connectPage is the board of logins, as on the consent page.
type connectPage struct {
	view
	Begun bool
}

func (c *Console) connectPage(v *screen) {
	v.Title, v.Nav, v.body = "Connect", "connect", "connect"
	p := connectPage{}
	if d := c.world.Logins(); d != nil {
		rows := d.Rows()
		p.view, p.Begun = look(rows), len(rows) > 0
	}
	v.Page = p
}

var _ Driver = (*bulk.Driver)(nil)
