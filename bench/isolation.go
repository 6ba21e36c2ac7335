package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/app"
)

// badKinds are the ways in which the twentieth server misbehaves: switches of the fake
// server, and "legacy" for one that speaks the legacy protocol only.
var badKinds = []string{
	"silent;on=tools/call", "latency=5000;on=tools/call", "crash-loop=1", "http-status=500", "http-status=503",
	"http-status=429", "slowbyte=50", "bigline=20", "garbage=200", "unsolicited=900",
	"notification-flood=2000", "progress-flood=2000", "hang-after-headers", "truncated-json", "deep=100000",
	"legacy ping-flood=2000 hold-answers", "legacy ping-flood=2000;on=GET hold-answers", "legacy ask-flood=2000",
	"legacy change-flood=2000", "unknown-flood=2000", "list-bomb=512",
}

const (
	healthyServers  = 19
	isolationRounds = 7
	roundTime       = 3 * time.Second // so that 28 calls are slower than the 99th percentile
	callsPerSecond  = 50              // to each healthy server: a working load, not saturation
	annoyPerSecond  = 20              // by each of the four who use the bad one
)

// isolation measures what nineteen healthy servers feel of a twentieth: the 99th
// percentile of their calls with the bad one in flight, over that of the round before
// without it, as a median of such pairs: what the machine does beside it comes and goes
// and falls on both of a pair.
func isolation(ctx context.Context, log io.Writer) ([]row, error) {
	healthy, err := startFake(ctx, false)
	if err != nil {
		return nil, err
	}
	defer healthy.stop()
	var rows []row
	for _, kind := range badKinds {
		fmt.Fprintf(log, "isolation: %s\n", kind)
		ratio, err := isolationOf(ctx, healthy, kind)
		if err != nil {
			return rows, fmt.Errorf("%s: %w", kind, err)
		}
		rows = append(rows, row{Part: "isolation", Name: "p99 beside " + kind, Value: ratio, Unit: "×", Bar: 1.2})
	}
	return rows, nil
}

func isolationOf(ctx context.Context, healthy *child, kind string) (float64, error) {
	bad, err := startFake(ctx, true, strings.Fields(kind)...)
	if err != nil {
		return 0, err
	}
	defer bad.stop()
	h, err := openIsolation(ctx, healthy.url, bad.url)
	if err != nil {
		return 0, err
	}
	defer func() { _ = h.Close() }()
	var givenUp atomic.Bool                                            // from round to round: the first second of a round reinstates it
	if _, err := isolationRound(ctx, h, false, &givenUp); err != nil { // warm up
		return 0, err
	}
	var ratios []float64
	for range isolationRounds {
		without, err := isolationRound(ctx, h, false, &givenUp)
		if err != nil {
			return 0, err
		}
		with, err := isolationRound(ctx, h, true, &givenUp)
		if err != nil {
			return 0, err
		}
		ratios = append(ratios, with.Seconds()/without.Seconds())
	}
	return median(ratios), nil
}

func openIsolation(ctx context.Context, healthyURL, badURL string) (*app.App, error) {
	servers := []config.Server{{
		Name: "bad", Transport: config.TransportHTTP, URL: badURL,
		Timeouts: config.Timeouts{Connect: 2 * time.Second, List: 2 * time.Second, Call: 300 * time.Millisecond},
	}}
	for i := range healthyServers {
		servers = append(servers, config.Server{Name: fmt.Sprintf("healthy%02d", i), Transport: config.TransportHTTP, URL: healthyURL})
	}
	return open(ctx, servers...)
}

// isolationRound calls every healthy server at a steady pace and returns their
// 99th percentile. When annoyed, four callers use the bad one meanwhile.
func isolationRound(ctx context.Context, h *app.App, annoyed bool, givenUp *atomic.Bool) (time.Duration, error) {
	ctx, stop := context.WithTimeout(ctx, roundTime)
	defer stop()
	var mu sync.Mutex // guards sample, failed
	var sample []time.Duration
	var failed error
	var wg sync.WaitGroup
	for i := range healthyServers {
		wg.Go(func() {
			took, err := steadyCalls(ctx, h, fmt.Sprintf("healthy%02d", i), i)
			mu.Lock()
			defer mu.Unlock()
			sample = append(sample, took...)
			if err != nil {
				failed = err
			}
		})
	}
	if annoyed {
		for range 4 {
			wg.Go(func() { annoy(ctx, h, givenUp) })
		}
		wg.Go(func() { reinstate(ctx, h, givenUp) })
	}
	wg.Wait()
	return quantile(sample, 0.99), failed
}

// annoy uses the bad server as a stubborn caller would, and says when supervision
// has given it up.
func annoy(ctx context.Context, h *app.App, givenUp *atomic.Bool) {
	tick := time.NewTicker(time.Second / annoyPerSecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		_, err := h.Call(ctx, "bad", "echo", []byte(`{}`), nil) // it is meant to fail
		if errors.Is(err, host.ErrCircuitOpen) || errors.Is(err, host.ErrEjected) {
			givenUp.Store(true)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// reinstate takes the bad server back into service once a second when supervision
// has given it up, as an impatient operator would, so that it goes on misbehaving.
func reinstate(ctx context.Context, h *app.App, givenUp *atomic.Bool) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for ctx.Err() == nil {
		if givenUp.Swap(false) {
			_ = h.Servers().Reload(ctx, "bad") // there is nobody to tell
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

func steadyCalls(ctx context.Context, h *app.App, server string, n int) ([]time.Duration, error) {
	var took []time.Duration
	tick := time.NewTicker(time.Second / callsPerSecond)
	defer tick.Stop()
	want := fmt.Sprintf(`{"nonce":%d}`, n)
	for {
		select {
		case <-ctx.Done():
			return took, nil
		case <-tick.C:
		}
		began := time.Now()
		result, err := h.Call(context.WithoutCancel(ctx), server, "echo", []byte(want), nil)
		if err != nil {
			return took, fmt.Errorf("a healthy server's call failed: %w", err)
		}
		took = append(took, time.Since(began))
		if err := checkEcho(result, want); err != nil {
			return took, err
		}
	}
}
