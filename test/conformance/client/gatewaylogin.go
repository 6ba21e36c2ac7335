package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
)

// again is what usher says when a call goes through after a login.
const again = "Make the same call again"

var link = regexp.MustCompile(`https?://[^\s()<>]+`)

// wantsLogin reads an answer as an agent does: whether a login is needed first, and
// which page a person has to open; none where usher needs nobody for it.
func wantsLogin(result []byte, err error) (page string, needed bool) {
	var said *mcp.Error
	if errors.As(err, &said) && said.Code == mcp.CodeURLElicitation {
		list, _ := jsonx.Get(said.Data, "elicitations")
		for e := jsonx.Array(list); e.Next(); {
			return jsonx.GetText(e.Value, "url"), true
		}
	}
	text := textOf(result)
	if said != nil {
		text = said.Message
	}
	if !strings.Contains(text, again) {
		return "", false
	}
	return strings.TrimRight(link.FindString(text), "."), true
}

// textOf is the first text of a tool's result.
func textOf(result []byte) string {
	content, _ := jsonx.Get(result, "content")
	for e := jsonx.Array(content); e.Next(); {
		return jsonx.GetText(e.Value, "text")
	}
	return ""
}

// logIn does what a person does about it, in the form that is judged.
func (g *gateway) logIn(ctx context.Context, page string) error {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	if page == "" {
		return nil
	}
	switch g.task.login {
	case "paste":
		landed, err := consent(ctx, page)
		if err != nil {
			return err
		}
		_, err = g.tool(ctx, "/direct/mcp", "login", map[string]string{"server": serverName, "redirect_url": landed})
		return err
	case "async":
		return g.logInLater(ctx)
	}
	return refused(visit(ctx, page))
}

// refused is what a person makes of a page that does not let them in.
func refused(worked bool, err error) error {
	if err == nil && !worked {
		return errors.New("the page says that the login did not work")
	}
	return err
}

// logInLater has the agent begin the login with the one small tool, the person open
// the page, and the agent look how it stands.
func (g *gateway) logInLater(ctx context.Context) error {
	text, err := g.tool(ctx, "/meta/mcp", "mcp", map[string]string{"action": "login", "server": serverName})
	if err != nil {
		return err
	}
	page := link.FindString(text)
	if page == "" {
		return fmt.Errorf("no page to open in %q", text)
	}
	if err := refused(visit(ctx, page)); err != nil {
		return err
	}
	for {
		text, err := g.tool(ctx, "/meta/mcp", "mcp", map[string]string{"action": "status", "server": serverName})
		if err != nil {
			return err
		}
		if !strings.Contains(text, "pending") {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tool calls a tool of usher itself, at another of its endpoints.
func (g *gateway) tool(ctx context.Context, path, name string, arguments map[string]string) (string, error) {
	c, err := g.dial(ctx, path)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	args := []byte("{}")
	for k, v := range arguments {
		args = jsonx.Set(args, k, jsonx.Quote(v))
	}
	params := jsonx.Set(jsonx.Set(nil, "name", jsonx.Quote(name)), "arguments", args)
	result, err := c.Call(ctx, mcp.Request{Method: mcp.MethodToolsCall, Params: params}, g.answer)
	if err != nil {
		return "", err
	}
	if bad, _ := jsonx.Get(result, "isError"); string(bad) == "true" {
		return "", fmt.Errorf("%s: %s", name, textOf(result))
	}
	return textOf(result), nil
}
