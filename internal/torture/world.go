package torture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/keys"
	"github.com/usher-mcp/usher/vault/sqlstore"
)

// world is an authorization server, a resource that it protects, and a store with
// logins.
type world struct {
	as    *fake.AuthServer
	url   string // of the resource
	dir   string // of the store
	store vault.Store
	e     *auth.Engine

	mu   sync.Mutex // guards uses
	uses map[string]int

	stops []func()
}

// newWorld makes one. With once set the resource accepts each token for one request
// only, so that every second request needs a renewal.
func newWorld(ctx context.Context, dir string, opt *fake.AuthOptions, once bool) (*world, error) {
	w := &world{as: fake.NewAuth(opt), dir: dir, uses: map[string]int{}}
	_, stop, err := w.as.Listen()
	if err != nil {
		return nil, err
	}
	w.stops = append(w.stops, stop)
	prot := &fake.Protected{}
	guarded := w.as.Protect(prot, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if once && w.use(r.Header.Get("Authorization")) > 1 {
			rw.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(rw, "{}") // the caller may be dead by now
	}))
	address, stop, err := serve(guarded)
	if err != nil {
		w.close()
		return nil, err
	}
	w.stops = append(w.stops, stop)
	w.url = address + "/mcp"
	prot.Resource = w.url
	if w.store, err = openStore(ctx, dir); err != nil {
		w.close()
		return nil, err
	}
	w.e = auth.New(w.store, nil)
	return w, nil
}

// serve listens on a free port of the loopback interface.
func serve(h http.Handler) (address string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	hs := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = hs.Serve(l) // ends with http.ErrServerClosed
	}()
	return "http://" + l.Addr().String(), func() {
		_ = hs.Close()
		<-done
	}, nil
}

// openStore opens a sealed store as usher has it, its key in a file beside it.
func openStore(ctx context.Context, dir string) (vault.Store, error) {
	s, err := sqlstore.Open(ctx, filepath.Join(dir, "state", "usher.db"), nil)
	if err != nil {
		return nil, err
	}
	return keys.Sealed(s, keys.New(s, keys.Options{Setting: "file:" + filepath.Join(dir, "key")})), nil
}

func (w *world) use(header string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.uses[header]++
	return w.uses[header]
}

func (w *world) close() {
	if w.e != nil {
		_ = w.e.Close() // it has no way to fail that matters now
	}
	if w.store != nil {
		_ = w.store.Close()
	}
	for _, stop := range w.stops {
		stop()
	}
}

func (w *world) server() config.Server { return serverAt(w.url) }

func serverAt(url string) config.Server {
	return config.Server{Name: "srv", Transport: config.TransportHTTP, URL: url, OAuth: &config.OAuth{}}
}

func account(i int) auth.Account { return auth.Account{Server: "srv", Label: fmt.Sprint("a", i)} }

// login logs an account in, as a person with a browser would.
func (w *world) login(ctx context.Context, a auth.Account) error {
	p, err := w.e.Begin(ctx, a, w.server(), nil)
	if err != nil {
		return err
	}
	back, err := w.as.Consent(ctx, p.AuthorizeURL)
	if err != nil {
		return err
	}
	cb, err := oauth.ReadCallback(back.Query())
	if err != nil {
		return err
	}
	_, err = w.e.Complete(ctx, cb)
	return err
}

// generation is how often an account's login was written, as the store has it now.
func (w *world) generation(ctx context.Context, a auth.Account) (int64, error) {
	e := auth.New(w.store, nil) // one that remembers nothing
	defer func() { _ = e.Close() }()
	s, err := e.Status(ctx, a)
	if err == nil && s.State == auth.StateNone {
		err = errors.New("there is no login")
	}
	return s.Generation, err
}

// caller makes requests with an account's token, as a host does.
type caller struct {
	e   *auth.Engine
	c   *http.Client
	srv config.Server
}

func newCaller(store vault.Store, url string) *caller {
	e := auth.New(store, nil)
	return &caller{e: e, c: &http.Client{Transport: e.Transport(&http.Transport{MaxIdleConnsPerHost: 4})}, srv: serverAt(url)}
}

func (c *caller) close() {
	c.c.CloseIdleConnections()
	_ = c.e.Close()
}

// call makes one request, and once more if there are newer tokens after a refusal.
func (c *caller) call(ctx context.Context, a auth.Account) error {
	for try := 0; ; try++ {
		body := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.srv.URL, body)
		if err != nil {
			return err
		}
		if err := c.e.Authorize(ctx, a, &c.srv, req); err != nil {
			return err
		}
		resp, err := c.c.Do(req)
		if err != nil {
			return err
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode < 300 {
			return nil
		}
		if try == 1 || resp.StatusCode != http.StatusUnauthorized {
			return fmt.Errorf("HTTP %d", resp.StatusCode)
		}
		if err := c.e.Refused(ctx, a, c.srv, auth.Challenge{Status: resp.StatusCode}); err != nil {
			return err
		}
	}
}
