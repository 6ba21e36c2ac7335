package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/cli"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/vault/sqlstore"
)

// serverName is what the suite's server is called in usher's configuration.
const serverName = "conformance"

// maxLogins is how often the person is willing to log in for one request.
const maxLogins = 5

// hosted is usher as programs embed it: supervised, with logins.
type hosted struct {
	task   task
	host   *app.App
	key    host.Key
	answer mcp.Responder
	dir    string // holds the store, so that another process can finish a login
	store  *sqlstore.Store
}

func connectHosted(ctx context.Context, t task) (*hosted, error) {
	dir, err := os.MkdirTemp("", "usher-conformance-home-")
	if err != nil {
		return nil, err
	}
	store, err := sqlstore.Open(ctx, filepath.Join(dir, "usher.db"), nil)
	if err != nil {
		return nil, err
	}
	srv := config.Server{Name: serverName, Transport: config.TransportHTTP, URL: t.url, OAuth: t.details.oauth(t.name)}.WithDefaults()
	h, err := app.Open(ctx, &app.Options{
		Config: &config.Config{Usher: config.DefaultSettings(), Servers: []config.Server{srv}},
		Store:  store, Log: t.log, ClientName: "usher-conformance", ClientVersion: "1",
	})
	if err != nil {
		return nil, err
	}
	return &hosted{task: t, host: h, key: host.Key{Server: serverName}, answer: accept(t.scenario.answer), dir: dir, store: store}, nil
}

func (s *hosted) close() error {
	return errors.Join(s.host.Close(), s.store.Close(), os.RemoveAll(s.dir))
}

func (s *hosted) list(ctx context.Context, method string) ([][]byte, error) {
	var items [][]byte
	err := s.loggedIn(ctx, func() error {
		result, err := s.host.Gate().Do(ctx, policy.Caller{}, s.key, host.Request{Request: mcp.Request{Method: method}, Answer: s.answer})
		if err != nil {
			return err
		}
		raw, _ := jsonx.Get(result.Raw, "tools")
		for e := jsonx.Array(raw); e.Next(); {
			items = append(items, e.Value)
		}
		return nil
	})
	return items, err
}

func (s *hosted) request(ctx context.Context, method string, params []byte) (result []byte, err error) {
	err = s.loggedIn(ctx, func() error {
		r, err := s.host.Gate().Do(ctx, policy.Caller{}, s.key, host.Request{Request: mcp.Request{Method: method, Params: params}, Answer: s.answer})
		result = r.Raw
		return err
	})
	return result, err
}

// loggedIn does something, logging in as a person would whenever usher says that a
// login is needed.
func (s *hosted) loggedIn(ctx context.Context, do func() error) error {
	err := do()
	for range maxLogins {
		if !errors.Is(err, host.ErrNeedsLogin) {
			return err
		}
		if err := s.patiently(ctx); err != nil {
			return fmt.Errorf("log in: %w", err)
		}
		err = do()
	}
	return err
}

// patience is how long the person looks at a page that does not let them in.
const patience = 4 * time.Second

func (s *hosted) patiently(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	return s.login(ctx)
}

func (s *hosted) login(ctx context.Context) error {
	account := s.host.Logins().DefaultAccount(serverName)
	srv, err := s.host.Logins().Target(ctx, account)
	if err != nil {
		return err
	}
	engine := s.host.Auth()
	if _, err := engine.Machine(ctx, account, srv, nil); !errors.Is(err, auth.ErrNoFlow) {
		return err
	}
	if s.task.login == "browser" {
		_, err := engine.Browser(ctx, browser(), account, srv, &auth.LoginOptions{Listen: true}, nil)
		return err
	}
	pending, err := engine.Begin(ctx, account, srv, nil)
	if err != nil {
		return err
	}
	landed, err := consent(ctx, pending.AuthorizeURL)
	if err != nil {
		return err
	}
	if s.task.login == "paste" {
		_, err = engine.Paste(ctx, pending.State, landed)
		return err
	}
	if err := s.completeElsewhere(ctx, landed); err != nil {
		return err
	}
	_, err = engine.Wait(ctx, pending.State)
	return err
}

// browser is what the usher command opens pages with.
func browser() auth.Interactive {
	return auth.NewInteractive(func(ctx context.Context, address string) error {
		return cli.OpenBrowser(ctx, os.Getenv("BROWSER"), address)
	})
}

// consent is a person who agrees: it opens the page and returns the address that
// the browser ends up on.
func consent(ctx context.Context, address string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	landed := resp.Header.Get("Location")
	if landed == "" {
		return "", fmt.Errorf("the consent page answered HTTP %d without a redirect", resp.StatusCode)
	}
	return landed, nil
}

// browse is the person's browser: it opens the page once and follows where it
// leads. What that page says is for the person.
func browse(ctx context.Context, address string) error {
	_, err := visit(ctx, address)
	return err
}

// visit is browse by a person who sees whether it worked.
func visit(ctx context.Context, address string) (worked bool, err error) {
	landed, err := consent(ctx, address)
	if err != nil {
		return false, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, landed, nil)
	if err != nil {
		return false, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false, err
	}
	return resp.StatusCode < http.StatusBadRequest, resp.Body.Close()
}

// completeElsewhere lets another process that shares the store finish the login.
func (s *hosted) completeElsewhere(ctx context.Context, landed string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, exe, "complete", filepath.Join(s.dir, "usher.db"), landed)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("the other process: %w: %s", err, out)
	}
	return nil
}

// complete is that other process.
func complete(ctx context.Context, path, landed string) error {
	store, err := sqlstore.Open(ctx, path, nil)
	if err != nil {
		return err
	}
	engine := auth.New(store, nil)
	_, err = engine.Paste(ctx, "", landed)
	return errors.Join(err, engine.Close(), store.Close())
}
