package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/process"
)

// login measures beginning fifty logins at once: how long until the program has told
// all addresses, and what working on many at a time costs over the ideal.
func login(ctx context.Context, l *lab) ([]row, error) {
	fmt.Fprintln(l.log, "login: 50 servers with answers of 50 ms")
	var took []float64
	for range pick(l, 5, 2) {
		d, err := l.loginURLs(ctx)
		if err != nil {
			return nil, err
		}
		took = append(took, d.Seconds())
	}
	fmt.Fprintln(l.log, "login: 50 servers, five broken, one hung")
	ratio, note, err := l.loginOverhead(ctx)
	if err != nil {
		return nil, err
	}
	return []row{
		{Part: "login", Name: "50 servers, 50 ms answers: all addresses", Value: median(took), Unit: "s", Bar: 5, Note: "usher login --all, from its start"},
		{Part: "login", Name: "over (sum of single times ÷ 8 + slowest)", Value: ratio, Unit: "×", Bar: 1.25, Note: note},
	}, nil
}

// loginURLs is the time from the start of usher login --all to the fiftieth address.
func (l *lab) loginURLs(ctx context.Context) (time.Duration, error) {
	world, err := l.start(ctx, process.Self(), []string{"child-logins", "50"}, nil, 1)
	if err != nil {
		return 0, err
	}
	defer world.stop()
	servers := map[string]string{}
	for i, url := range strings.Split(world.url, ",") {
		servers[fmt.Sprintf("echo%02d", i)] = at(url)
	}
	home, err := l.home(servers)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	p, err := process.Start(ctx, process.Options{
		Command: l.usher, Args: []string{"login", "--all", "--no-browser", "--json"}, Shim: process.Self(), Grace: -1, Kill: time.Second,
		Env: process.SafeEnv(os.Environ(), map[string]string{"USHER_HOME": home, "HOME": home}), Dir: home,
	})
	if err != nil {
		return 0, err
	}
	defer func() { _ = p.Stop() }()
	pending := 0
	for lines := bufio.NewScanner(p.Stdout()); lines.Scan(); {
		var line struct{ Status, Server, Error string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return 0, err
		}
		if line.Status == "failed" {
			return 0, fmt.Errorf("%s: %s", line.Server, line.Error)
		}
		if line.Status == "pending" {
			pending++
		}
		if pending == loginServers {
			return time.Since(began), nil
		}
	}
	return 0, fmt.Errorf("usher login --all ended after %d addresses", pending)
}

// loginOverhead compares beginning all logins at once with what it would take if
// nothing but the work itself cost time: the sum of the single times, shared by the
// places, and the slowest, which may have come last. A server that hangs holds one of
// the places all the time, and is not counted.
func (l *lab) loginOverhead(ctx context.Context) (ratio float64, note string, err error) {
	world, err := l.start(ctx, process.Self(), []string{"child-logins", "mixed"}, nil, 1)
	if err != nil {
		return 0, "", err
	}
	defer world.stop()
	var servers []config.Server
	for i, url := range strings.Split(world.url, ",") {
		servers = append(servers, config.Server{Name: fmt.Sprintf("echo%02d", i), Transport: config.TransportHTTP, URL: url})
	}
	h, err := open(ctx, servers...)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = h.Close() }()
	targets, err := loginTargets(ctx, h)
	if err != nil {
		return 0, "", err
	}
	hung := targets[len(targets)-1].Account.String()
	begin := func(targets []bulk.Target) (time.Duration, error) { return beginLogins(ctx, h, targets, hung) }
	if _, err := begin(targets); err != nil { // clients are registered once, and not measured
		return 0, "", err
	}
	var sum, slowest time.Duration
	for _, t := range targets[:len(targets)-1] {
		d, err := begin([]bulk.Target{t})
		if err != nil {
			return 0, "", err
		}
		sum, slowest = sum+d, max(slowest, d)
	}
	// The hung one comes first, so that it has its place from the beginning.
	order := append([]bulk.Target{targets[len(targets)-1]}, targets[:len(targets)-1]...)
	ideal := sum/8 + slowest
	var ratios []float64
	for range pick(l, 5, 2) {
		d, err := begin(order)
		if err != nil {
			return 0, "", err
		}
		ratios = append(ratios, d.Seconds()/ideal.Seconds())
	}
	return median(ratios), fmt.Sprintf("one of the 8 places held by a hung server; ideal %.2f s", ideal.Seconds()), nil
}

func loginTargets(ctx context.Context, h *app.App) ([]bulk.Target, error) {
	var out []bulk.Target
	for _, srv := range h.Config().Servers {
		a := h.Logins().DefaultAccount(srv.Name)
		full, err := h.Logins().Target(ctx, a)
		if err != nil {
			return nil, err
		}
		out = append(out, bulk.Target{Account: a, Server: full})
	}
	return out, nil
}

// beginLogins begins logins again and returns when the last one but the hung one was
// ready.
func beginLogins(ctx context.Context, h *app.App, targets []bulk.Target, hung string) (took time.Duration, err error) {
	d := bulk.New(bulk.NewEngine(h.Auth(), nil), &bulk.Options{Bulk: config.Bulk{Concurrency: 8, PrepareTimeout: 4 * time.Second}})
	defer func() { _ = d.Close() }()
	began := time.Now()
	d.Prepare(ctx, targets, bulk.ModeAll, bulk.Redirect{Fresh: true}, func(o bulk.Outcome) {
		if o.Server != hung {
			took = time.Since(began)
		}
		broken := strings.HasSuffix(o.Server, "9")
		if (o.Status == bulk.StatusFailed) != broken {
			err = fmt.Errorf("%s: %s %s", o.Server, o.Status, o.Problem())
		}
	})
	return took, err
}
