package main

import (
	"context"
	"fmt"
	"time"
)

const mb = 1 << 20

// memory measures the anonymous resident memory of the program itself, as users
// have it: with connected servers, then with many clients.
func memory(ctx context.Context, l *lab) ([]row, error) {
	echo, err := l.startEcho(ctx)
	if err != nil {
		return nil, err
	}
	defer echo.stop()
	var rows []row
	for _, n := range []int{1, 20, 100} {
		bar := map[int]float64{20: 20, 100: 35}[n]
		defs := map[string]string{}
		for i := range n {
			defs[fmt.Sprintf("echo%d", i)] = at(fmt.Sprintf("%s%d/mcp", echo.url, i))
		}
		got, err := l.memoryOf(ctx, defs, n == 20)
		if err != nil {
			return rows, err
		}
		rows = append(rows, row{Part: "memory", Name: fmt.Sprintf("RssAnon with %d HTTP upstreams", n), Value: got.rest, Unit: "MB", Bar: bar})
		if n == 20 {
			rows = append(rows, row{Part: "memory", Name: "256 clients add", Value: got.clients - got.rest, Unit: "MB", Bar: 40})
		}
	}
	children := map[string]string{}
	for i := range 20 {
		children[fmt.Sprintf("echo%d", i)] = program(l.echo, "-stdio")
	}
	got, err := l.memoryOf(ctx, children, false)
	return append(rows, row{Part: "memory", Name: "RssAnon with 20 stdio upstreams", Value: got.rest, Unit: "MB"}), err
}

// resident is memory in MB: with servers connected, and with clients on top.
type resident struct{ rest, clients float64 }

func (l *lab) memoryOf(ctx context.Context, defs map[string]string, clients bool) (resident, error) {
	var out resident
	home, err := l.home(defs)
	if err != nil {
		return out, err
	}
	c, err := l.serveReal(ctx, home)
	if err != nil {
		return out, err
	}
	defer c.stop()
	var paths []string
	for name := range defs {
		paths = append(paths, "servers/"+name+"/mcp")
	}
	// Each is called a few times, so that all are connected and in use.
	ld := load{url: c.url, paths: paths, clients: 1, size: 256, tool: "echo"}
	if err := ld.times(ctx, 5*len(defs)); err != nil {
		return out, err
	}
	if out.rest, err = settled(ctx, c.proc.Pid()); err != nil || !clients {
		return out, err
	}
	lctx, stop := context.WithTimeout(ctx, pick(l, 5*time.Second, 2*time.Second))
	defer stop()
	ld.clients = 256
	peak := make(chan float64, 1)
	go func() { peak <- highest(lctx, c.proc.Pid()) }()
	_, err = ld.run(lctx)
	out.clients = <-peak
	return out, err
}

// settled is the memory once it has stopped growing.
func settled(ctx context.Context, pid int) (float64, error) {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
	v, err := rssAnon(pid)
	return v / mb, err
}

// highest is the most that is seen until ctx ends.
func highest(ctx context.Context, pid int) float64 {
	var most float64
	for ctx.Err() == nil {
		if v, err := rssAnon(pid); err == nil {
			most = max(most, v/mb)
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return most
}
