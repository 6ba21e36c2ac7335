package torture

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/internal/fake"
)

// floods lets hostile clients flood a gateway, one kind after the other, while healthy
// clients of another principal call a server through it: they lose no call, and the
// gateway's memory and descriptors stay bounded.
func floods(t *trial) error {
	g, err := t.newGateway()
	if err != nil {
		return err
	}
	defer g.stop()
	each := time.Duration(t.goal(300, 8000)) * time.Millisecond // in the short form other promises are checked at the same time
	alone, err := g.healthy(t, each)
	if err != nil {
		return err
	}
	var worst time.Duration
	for _, f := range clientFloods() {
		if !t.on() {
			break
		}
		p99, err := t.flood(g, f, each)
		if err != nil {
			return err
		}
		worst = max(worst, p99)
		t.count("kinds of flood", 1)
	}
	t.count("calls lost", 0)
	t.count("µs p99 of the healthy alone", int(alone.Microseconds()))
	t.count("µs p99 beside the worst flood", int(worst.Microseconds()))
	// The hostile clients use the same processors as the healthy ones.
	if bar := max(time.Duration(t.goal(5000, 250))*time.Millisecond, 5*alone); worst > bar {
		t.breaks("healthy calls took %s beside a flood, more than %s", worst, bar)
	}
	return nil
}

// flood lets hostile clients of one kind work for a time, and returns what the healthy
// ones noticed.
func (t *trial) flood(g *gatewayProcess, f clientFlood, each time.Duration) (time.Duration, error) {
	ctx, stop := context.WithCancel(t.ctx)
	defer stop()
	fetched := g.fetches.Load()
	var hostile sync.WaitGroup
	var sent atomic.Int64
	clients := t.goal(1, f.clients)
	for i := range clients {
		hostile.Go(func() {
			f.run(ctx, g, func() {
				sent.Add(1)
				pause(ctx, time.Duration(t.goal(20, 2))*time.Millisecond)
			}, f.held/f.clients, i)
		})
	}
	p99, err := g.healthy(t, each)
	memory, files := usage(g.cmd.Process.Pid)
	stop()
	hostile.Wait()
	t.count("hostile messages and connections", int(sent.Load()))
	t.most("MiB of the gateway", memory>>20)
	t.most("descriptors of the gateway", files)
	if bar := t.goal(1024, 256); memory>>20 > bar {
		t.breaks("%s: the gateway takes %d MiB", f.name, memory>>20)
	}
	if files > 4500 {
		t.breaks("%s: the gateway has %d descriptors open", f.name, files)
	}
	if n := g.fetches.Load() - fetched; n > int64(each/(10*time.Second))+2 {
		t.breaks("%s: the issuer was asked for its keys %d times", f.name, n)
	}
	return p99, err
}

// gatewayProcess is the program as a gateway, with a server behind it and an issuer
// whose tokens it accepts.
type gatewayProcess struct {
	cmd             *exec.Cmd
	url             string
	good, bad       string // tokens of two principals
	fetches         atomic.Int64
	stops           []func()
	keepAlive, once *http.Client
}

func (t *trial) newGateway() (g *gatewayProcess, err error) {
	g = &gatewayProcess{
		keepAlive: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}},
		once:      &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	}
	defer func() {
		if err != nil {
			g.stop()
		}
	}()
	s := fake.New(&fake.Options{Name: "good", Ledger: fake.DiscardLedger()})
	server, stop, err := s.Listen()
	if err != nil {
		return g, err
	}
	g.stops = append(g.stops, stop, s.Close)
	issuer, stop, err := serve(http.HandlerFunc(g.issue))
	if err != nil {
		return g, err
	}
	g.stops = append(g.stops, stop)
	h, err := t.newHome("gateway", nil)
	if err != nil {
		return g, err
	}
	set := map[string]any{
		"key": "file:" + filepath.Join(h.dir, "key"),
		"gateway": map[string]any{
			"publicUrl": "http://usher.test", "discoveryHosts": []string{"127.0.0.1"}, "auth": map[string]any{"mode": "oidc", "issuer": issuer},
		},
	}
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"good": map[string]any{"url": server + "/mcp"}}, "usher": set})
	if err != nil {
		return g, err
	}
	if err := os.WriteFile(filepath.Join(h.dir, "mcp.json"), text, 0o600); err != nil {
		return g, err
	}
	if g.good, err = mint(h, "healthy"); err != nil {
		return g, err
	}
	if g.bad, err = mint(h, "hostile"); err != nil {
		return g, err
	}
	return g, g.start(h)
}

// mint makes a token of a principal. The command needs a person, who may not be here.
func mint(h *home, principal string) (string, error) {
	host, err := app.Open(h.t.ctx, &app.Options{Load: config.LoadOptions{System: config.System{
		Home: h.dir, Workdir: h.dir, LookupEnv: func(name string) (string, bool) { return h.dir, name == "USHER_HOME" },
	}}})
	if err != nil {
		return "", err
	}
	text, _, err := host.Frontend().Tokens().Mint(h.t.ctx, authn.Mint{Principal: principal})
	return text, errors.Join(err, host.Close())
}

// start runs the gateway and waits until it says where it listens.
func (g *gatewayProcess) start(h *home) error {
	g.cmd = h.command("serve", "--http", "127.0.0.1:0", "--no-console")
	said, err := g.cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := g.cmd.Start(); err != nil {
		return err
	}
	drained := make(chan struct{})
	g.stops = append(g.stops, func() {
		_ = g.cmd.Process.Kill() // nothing of it is wanted any more
		<-drained
		_ = g.cmd.Wait() // it was killed
	})
	address := make(chan string, 1)
	go func() {
		defer close(drained)
		defer close(address)
		for lines := bufio.NewScanner(said); lines.Scan(); {
			if _, rest, ok := strings.Cut(lines.Text(), "serving "); ok {
				select {
				case address <- strings.TrimSuffix(rest, "/mcp"):
				default: // it was said before
				}
			}
		}
	}()
	url, ok := <-address
	if !ok {
		return fmt.Errorf("usher serve ended at once")
	}
	g.url = url + "/servers/good/mcp"
	return nil
}

func (g *gatewayProcess) stop() {
	for _, stop := range slices.Backward(g.stops) {
		stop()
	}
	g.keepAlive.CloseIdleConnections()
	g.once.CloseIdleConnections()
}

// issue plays an issuer without keys, and counts who asks for them.
func (g *gatewayProcess) issue(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if strings.HasSuffix(r.URL.Path, "/keys") {
		g.fetches.Add(1)
		fmt.Fprint(w, `{"keys":[]}`)
		return
	}
	issuer := "http://" + r.Host
	fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q,"id_token_signing_alg_values_supported":["RS256"]}`, issuer, issuer+"/keys")
}

const healthyClients = 4

// healthy calls the server for a time, on lasting and on new connections, and returns
// the 99th percentile of what a call took.
func (g *gatewayProcess) healthy(t *trial, d time.Duration) (time.Duration, error) {
	ctx, stop := context.WithTimeout(t.ctx, d)
	defer stop()
	var mu sync.Mutex // guards took
	var took []time.Duration
	var wg sync.WaitGroup
	for i := range t.goal(2, healthyClients) {
		wg.Go(func() {
			session, err := g.initialize(t.ctx, g.good, "2025-11-25")
			if err != nil {
				t.breaks("a healthy client: %v", err)
				t.count("calls lost", 1)
				return
			}
			for n := 0; n < 3 || ctx.Err() == nil; n++ {
				mark := fmt.Sprintf("healthy/%d/%d/%s", i, n, rand.Text()[:6])
				begin := time.Now()
				if err := g.echo(t.ctx, session, mark, n%4 == 0); err != nil && t.ctx.Err() == nil {
					t.breaks("%s: %v", mark, err)
					t.count("calls lost", 1)
					return
				}
				mu.Lock()
				took = append(took, time.Since(begin))
				mu.Unlock()
				pause(ctx, 5*time.Millisecond)
			}
			_, _, _ = g.send(t.ctx, http.MethodDelete, g.good, session, "", false) // it ends anyway
		})
	}
	wg.Wait()
	t.count("healthy calls", len(took))
	if len(took) == 0 {
		return 0, t.ctx.Err()
	}
	slices.Sort(took)
	return took[len(took)*99/100], nil
}
