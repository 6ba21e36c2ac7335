package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/usher-mcp/usher/test/need"
	_ "github.com/usher-mcp/usher/vault/sqlstore" // the driver, for a schema of our own
)

// startReplicas starts several instances on one PostgreSQL and a balancer before them that
// sends every single request to the next one. config is the file they all read.
func startReplicas(ctx context.Context, usher, home string, config []byte, n int) (base string, stops []func(), err error) {
	store, drop, err := newSchema(ctx)
	if err != nil {
		return "", nil, err
	}
	stops = append(stops, drop)
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	var targets []*url.URL
	for i := range n {
		dir := filepath.Join(home, fmt.Sprintf("r%d", i))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", stops, err
		}
		if err := os.WriteFile(filepath.Join(dir, "mcp.json"), config, 0o600); err != nil {
			return "", stops, err
		}
		cmd := exec.CommandContext(ctx, usher, "serve", "--http", "127.0.0.1:0", "--surface", "direct", "--no-console")
		cmd.Env = append(os.Environ(), "USHER_HOME="+dir, "USHER_STORE="+store, "USHER_KEY=env:K", "K="+hex.EncodeToString(key))
		at, end, err := startPrinting(cmd, regexp.MustCompile(`serving (http://\S+)/mcp`))
		if err != nil {
			return "", stops, fmt.Errorf("start replica %d: %w", i, err)
		}
		stops = append(stops, end)
		u, err := url.Parse(at)
		if err != nil {
			return "", stops, err
		}
		targets = append(targets, u)
	}
	lb := httptest.NewServer(turnByTurn(targets))
	return lb.URL, append(stops, lb.Close), nil
}

// newSchema makes an empty schema in the database that scripts/postgres.sh started, or
// in one of its own.
func newSchema(ctx context.Context) (store string, drop func(), err error) {
	base, err := need.FindPostgres()
	if errors.Is(err, need.ErrMissing) {
		own, err := need.StartPostgres()
		if err != nil {
			return "", nil, err
		}
		return own.URL, func() { _ = own.Drop() }, nil // a later run sweeps what is left
	}
	if err != nil {
		return "", nil, err
	}
	db, err := sql.Open("pgx", base)
	if err != nil {
		return "", nil, err
	}
	name := "conformance_" + strings.ToLower(rand.Text()[:10])
	if _, err := db.ExecContext(ctx, "CREATE SCHEMA "+name); err != nil {
		return "", nil, fmt.Errorf("make a schema: %w", err)
	}
	u, err := url.Parse(base)
	if err != nil {
		return "", nil, err
	}
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String(), func() {
		_, _ = db.ExecContext(context.WithoutCancel(ctx), "DROP SCHEMA "+name+" CASCADE") // it is thrown away with the server
		_ = db.Close()
	}, nil
}

// turnByTurn sends each request to the next target. The body is read first: a proxy
// that streams it through may cut off a fast answer.
func turnByTurn(targets []*url.URL) http.Handler {
	var turn atomic.Int64
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(targets[int(turn.Add(1))%len(targets)])
			p.Out.Host = p.In.Host
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, "unreadable", http.StatusBadRequest)
			return
		}
		r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
		proxy.ServeHTTP(w, r)
	})
}
