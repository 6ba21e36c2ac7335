package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/upstream"
)

// gateway is usher as agents meet it: `usher serve` with the suite's server as the
// only one behind it, and a plain client of that.
type gateway struct {
	task task
	base string         // http://127.0.0.1:PORT
	conn *upstream.Conn // to the server, untouched
	cmd  *exec.Cmd
	home string
}

func connectGateway(ctx context.Context, t task) (*gateway, error) {
	home, err := os.MkdirTemp("", "usher-conformance-home-")
	if err != nil {
		return nil, err
	}
	g := &gateway{task: t, home: home}
	if err := g.serve(); err != nil {
		return nil, errors.Join(err, g.close())
	}
	if g.conn, err = g.dial(ctx, "/servers/"+serverName+"/mcp"); err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

// serve starts this program as usher. What it says goes to our standard error.
func (g *gateway) serve() error {
	entry := map[string]any{"type": "http", "url": g.task.url, "oauth": g.task.details.oauthEntry(g.task.name)}
	file, err := json.Marshal(map[string]any{"mcpServers": map[string]any{serverName: entry}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(g.home, "mcp.json"), file, 0o600); err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	g.cmd = exec.Command(exe, "usher", "serve", "--http", "127.0.0.1:0")
	g.cmd.Env = append(os.Environ(), "USHER_HOME="+g.home, "USHER_PASSPHRASE=only for this scenario")
	pipe, err := g.cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := g.cmd.Start(); err != nil {
		return err
	}
	found := make(chan string, 1)
	go func() {
		defer close(found)
		serving := regexp.MustCompile(`serving (http://\S+)/mcp`)
		for sc := bufio.NewScanner(pipe); sc.Scan(); {
			fmt.Fprintln(os.Stderr, "usher:", sc.Text())
			if m := serving.FindStringSubmatch(sc.Text()); m != nil {
				found <- m[1]
			}
		}
	}()
	if g.base = <-found; g.base == "" {
		return errors.New("usher ended without a word about where it serves")
	}
	return nil
}

// dial connects as an agent of the era that the scenario is about. Only in the
// browser form can the agent show a page.
func (g *gateway) dial(ctx context.Context, path string) (*upstream.Conn, error) {
	capabilities := `{"elicitation":{"form":{"applyDefaults":true}}}`
	if g.task.login == "browser" {
		capabilities = `{"elicitation":{"form":{"applyDefaults":true},"url":{}}}`
	}
	server := config.Server{Name: "usher", Transport: config.TransportHTTP, URL: g.base + path}.WithDefaults()
	return upstream.Dial(ctx, &server, &upstream.Options{
		Version: g.task.version, ClientName: "usher-conformance-agent", ClientVersion: "1",
		Capabilities: []byte(capabilities), OnRequest: g.answer, Log: g.task.log,
	})
}

func (g *gateway) close() error {
	var err error
	if g.conn != nil {
		err = g.conn.Close()
	}
	if g.cmd != nil && g.cmd.Process != nil {
		err = errors.Join(err, g.cmd.Process.Signal(os.Interrupt), g.cmd.Wait())
	}
	return errors.Join(err, os.RemoveAll(g.home))
}

// answer is the agent's person: agrees to every form, and opens every page.
func (g *gateway) answer(ctx context.Context, method string, params []byte) ([]byte, *mcp.Error) {
	if method == mcp.MethodElicit && jsonx.GetText(params, "mode") == "url" {
		if worked, err := visit(ctx, jsonx.GetText(params, "url")); err != nil || !worked {
			g.task.log.Warn("the login did not work", "error", err)
			return upstream.CancelForm(), nil
		}
		return []byte(`{"action":"accept"}`), nil
	}
	return accept(g.task.scenario.answer)(ctx, method, params)
}

func (g *gateway) list(ctx context.Context, method string) (items [][]byte, err error) {
	err = g.loggedIn(ctx, func() ([]byte, error) {
		all, err := g.conn.List(ctx, method)
		items = all.Items
		return nil, err
	})
	return items, err
}

func (g *gateway) request(ctx context.Context, method string, params []byte) (result []byte, err error) {
	err = g.loggedIn(ctx, func() ([]byte, error) {
		var err error
		result, err = g.conn.Call(ctx, mcp.Request{Method: method, Params: params}, g.answer)
		return result, err
	})
	return result, err
}

// loggedIn does something, and does it again for as long as usher says that a
// person has to log in first, and the person is willing.
func (g *gateway) loggedIn(ctx context.Context, do func() ([]byte, error)) error {
	result, err := do()
	for range maxLogins {
		page, needed := wantsLogin(result, err)
		if !needed {
			return err
		}
		if err := g.logIn(ctx, page); err != nil {
			return fmt.Errorf("log in: %w", err)
		}
		result, err = do()
	}
	if _, needed := wantsLogin(result, err); needed {
		return errors.New("usher requires login again and again")
	}
	return err
}
