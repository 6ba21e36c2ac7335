package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/process"
	"github.com/usher-mcp/usher/vault"
)

// child is a process of its own: a server, or a contestant.
type child struct {
	proc  *process.Child
	url   string
	aside string // where it tells its own figures; empty where it does not
}

// startFake starts a fake HTTP server as a child, on one core at most; polite
// children leave the cores to the rest.
func startFake(ctx context.Context, polite bool, switches ...string) (*child, error) {
	args := []string{"child-fake", "--http", "127.0.0.1:0"}
	if polite {
		args = append([]string{"polite"}, args...)
	}
	for _, sw := range switches {
		if sw == "legacy" {
			args = append(args, "--versions", mcp.LatestLegacy)
			continue
		}
		args = append(args, "--switch", sw)
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p, err := process.Start(ctx, process.Options{
		Command: exe, Args: args, Shim: process.Self(), Grace: -1, Kill: time.Second,
		Env: process.SafeEnv(os.Environ(), map[string]string{"GOMAXPROCS": "1"}),
	})
	if err != nil {
		return nil, err
	}
	url, err := bufio.NewReader(p.Stdout()).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("start a fake server: %w", err)
	}
	return &child{proc: p, url: strings.TrimSpace(url)}, nil
}

func (c *child) stop() { _ = c.proc.Stop() }

// open makes a host in front of the given servers, everything switched on as a
// user would have it.
func open(ctx context.Context, servers ...config.Server) (*app.App, error) {
	for i := range servers {
		servers[i] = servers[i].WithDefaults()
	}
	cfg := &config.Config{Usher: config.DefaultSettings(), Servers: servers}
	return app.Open(ctx, &app.Options{Config: cfg, Store: vault.NewMemory(), Executable: process.Self()})
}

// quantile of a sample, which is sorted on the way.
func quantile(sample []time.Duration, q float64) time.Duration {
	if len(sample) == 0 {
		return 0
	}
	slices.Sort(sample)
	return sample[min(len(sample)-1, int(q*float64(len(sample))))]
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// checkEcho wants the answer to be to the very question.
func checkEcho(result []byte, want string) error {
	if !strings.Contains(string(result), `"structuredContent":`+want) {
		return fmt.Errorf("an answer reached the wrong caller: %.200s, want %s", result, want)
	}
	return nil
}
