package otlp

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/usher-mcp/usher/internal/meter"
)

// Pusher sends the figures of a registry again and again.
type Pusher struct {
	Client   *Client
	Registry *meter.Registry
	About    *resource.Resource // who sends
	Scope    instrumentation.Scope
	Every    time.Duration // default 60s
	Timeout  time.Duration // of each time, with all attempts; default 30s
	OnError  func(error)   // is told what Run cannot send; may be nil
}

// The usual times.
const (
	defaultEvery       = time.Minute
	defaultPushTimeout = 30 * time.Second
)

// ReadTimes reads the variables that say how often and how long.
func (p *Pusher) ReadTimes(env func(name string) (value string, ok bool)) error {
	for name, d := range map[string]*time.Duration{
		"OTEL_METRIC_EXPORT_INTERVAL": &p.Every, "OTEL_METRIC_EXPORT_TIMEOUT": &p.Timeout,
	} {
		v, _ := env(name)
		if v = strings.TrimSpace(v); v == "" {
			continue
		}
		ms, err := strconv.ParseUint(v, 10, 31)
		if err != nil || ms == 0 {
			return fmt.Errorf("%s is %q, not a number of milliseconds", name, v)
		}
		*d = time.Duration(ms) * time.Millisecond
	}
	return nil
}

// Run sends until ctx is done. Nothing is lost when it cannot send: the next figures
// include what is missing.
func (p *Pusher) Run(ctx context.Context) {
	every, timeout := p.Every, p.Timeout
	if every <= 0 {
		every = defaultEvery
	}
	if timeout <= 0 {
		timeout = defaultPushTimeout
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		once, stop := context.WithTimeout(ctx, timeout)
		if err := p.Push(once); err != nil && ctx.Err() == nil && p.OnError != nil {
			p.OnError(err)
		}
		stop()
	}
}

// Push sends the figures of now.
func (p *Pusher) Push(ctx context.Context) error {
	return p.Client.Send(ctx, appendFigures(nil, figures{
		about: p.About, scope: p.Scope, began: p.Registry.Began(), now: time.Now(), families: p.Registry.Gather(),
	}))
}
