package console

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/usher-mcp/usher/internal/jsonx"
)

// What forms do. Each returns the page to go on with.

// startCall tries a tool with what was filled in.
func (c *Console) startCall(r *http.Request, form url.Values) (string, *note) {
	account, name := form.Get("server"), form.Get("tool")
	here := address(pathTool, "server", account, "name", name)
	t, ok := c.toolNamed(r.Context(), account, name)
	if !ok {
		return here, &note{Text: "That tool is not there any more.", Bad: true}
	}
	schema, _ := jsonx.Get(t.Definition, "inputSchema")
	fields := fieldsOf(schema)
	args, whole, ok := arguments(fields, form)
	if !ok {
		return here, &note{Text: "Not sent: fix the marked fields.", Bad: true, screen: func(s *screen) {
			if p, is := s.Page.(toolPage); is {
				p.Fields, p.JSON, p.Problem = fields, form.Get("json"), whole
				s.Page = p
			}
		}}
	}
	if mark(t) == "destroys" && form.Get("sure") == "" {
		return here, &note{Text: "Not sent: this tool is marked destructive, so tick the box below the form.", Bad: true, screen: refill(form)}
	}
	run, err := c.start(account, name, form, args)
	if err != nil {
		return here, &note{Text: err.Error(), Bad: true, screen: refill(form)}
	}
	return address(pathTool, "server", account, "name", name, "run", run.id), nil
}

// refill puts back what was typed.
func refill(form url.Values) func(*screen) {
	return func(s *screen) {
		if p, is := s.Page.(toolPage); is {
			p.fill(form)
			s.Page = p
		}
	}
}

func (c *Console) cancelCall(_ *http.Request, form url.Values) (string, *note) {
	account, tool := form.Get("server"), form.Get("tool")
	if run := c.runs.find(form.Get("run"), account, tool); run != nil {
		run.cancel()
	}
	return address(pathTool, "server", account, "name", tool, "run", form.Get("run")), nil
}

// steerTimeout is longer than a page should take: stopping a deaf child takes its
// time.
const steerTimeout = 20 * time.Second

// steer runs an operation on a server for a form on its page.
func (c *Console) steer(r *http.Request, account, done string, do func(context.Context) error) (string, *note) {
	here := address(pathServer, "name", account)
	ctx, stop := context.WithTimeout(r.Context(), steerTimeout)
	defer stop()
	err := do(ctx)
	c.forget()
	if err != nil {
		p := c.world.Explain(err)
		return here, &note{Text: plain(p.Text), Next: p.Next, Bad: true}
	}
	if done == "" {
		return here, nil
	}
	return here, &note{Text: done}
}

func (c *Console) listTools(r *http.Request, form url.Values) (string, *note) {
	account := form.Get("server")
	return c.steer(r, account, "", func(ctx context.Context) error { return c.world.List(ctx, account) })
}

func (c *Console) reload(r *http.Request, form url.Values) (string, *note) {
	name, account := form.Get("name"), form.Get("server")
	return c.steer(r, account, "", func(ctx context.Context) error {
		if err := c.world.Reload(ctx, name); err != nil {
			return err
		}
		return c.world.List(ctx, account) // whether it works now is what one wants to know
	})
}

func (c *Console) stopServer(r *http.Request, form url.Values) (string, *note) {
	return c.steer(r, form.Get("server"), "", func(context.Context) error { return c.world.Stop(form.Get("name")) })
}

func (c *Console) acceptPin(r *http.Request, form url.Values) (string, *note) {
	server, tool, hash := form.Get("server"), form.Get("tool"), form.Get("hash")
	if hash == "" {
		return pathPins, &note{Text: "Nothing was accepted: the form does not say which definition.", Bad: true}
	}
	err := c.world.Accept(r.Context(), server, tool, hash)
	c.forget()
	if err != nil {
		return pathPins, &note{Text: plain(err.Error()), Bad: true}
	}
	return pathPins, &note{Text: "Accepted " + plain(server+"/"+tool) + ". It can be called again."}
}

func (c *Console) beginLogin(_ *http.Request, form url.Values) (string, *note) {
	if err := c.world.Login(form.Get("account")); err != nil {
		p := c.world.Explain(err)
		return pathConnect, &note{Text: plain(p.Text), Next: p.Next, Bad: true}
	}
	return pathConnect, nil
}

func (c *Console) endLogin(r *http.Request, form url.Values) (string, *note) {
	account := form.Get("account")
	err := c.world.Logout(r.Context(), account)
	c.forget()
	if err != nil {
		return pathAccounts, &note{Text: plain(err.Error()), Bad: true}
	}
	return pathAccounts, &note{Text: account + " is logged out."}
}
