package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/process"
	"github.com/usher-mcp/usher/test/need"
)

// times asks n times with one client.
func (l load) times(ctx context.Context, n int) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	l.clients = 1
	c, err := l.speak(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.conn.Close() }()
	for i := range n {
		path := l.paths[i%len(l.paths)]
		if err := c.call(path, fmt.Sprintf(`"warm-%d"`, i)); err != nil {
			return err
		}
	}
	return nil
}

// serveReal starts the program that users have.
func (l *lab) serveReal(ctx context.Context, home string) (*child, error) {
	addr, err := need.Address()
	if err != nil {
		return nil, err
	}
	p, err := process.Start(ctx, process.Options{
		Command: l.usher, Args: []string{"serve", "--http", addr}, Shim: process.Self(), Grace: -1, Kill: time.Second,
		Env: process.SafeEnv(os.Environ(), map[string]string{"USHER_HOME": home}), Dir: l.dir,
	})
	if err != nil {
		return nil, err
	}
	c := &child{proc: p, url: "http://" + addr + "/"}
	for range 200 {
		if resp, err := http.Get(c.url + "readyz"); err == nil {
			_ = resp.Body.Close()
			return c, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	c.stop()
	return nil, errors.New("usher serve does not answer")
}

// lists measures how soon and how cheaply tools are listed.
func lists(ctx context.Context, l *lab) ([]row, error) {
	echo, err := l.startEcho(ctx)
	if err != nil {
		return nil, err
	}
	defer echo.stop()
	rows, err := l.coldLists(ctx, echo)
	if err != nil {
		return rows, err
	}
	many, err := l.thousandTools(ctx)
	return append(rows, many...), err
}

// healthy is how many of a hundred servers answer; the last one hangs.
const healthy = 99

// coldLists starts usher before a hundred servers of which one hangs, and waits for
// the tools of all others.
func (l *lab) coldLists(ctx context.Context, echo *child) ([]row, error) {
	defs := map[string]string{"echo-hangs": at(echo.url + "hang/mcp")}
	for i := range healthy {
		defs[fmt.Sprintf("echo%d", i)] = at(fmt.Sprintf("%s%d/mcp", echo.url, i))
	}
	var fresh, known []float64
	for range pick(l, 9, 3) {
		home, err := l.home(defs)
		if err != nil {
			return nil, err
		}
		for _, to := range []*[]float64{&fresh, &known} {
			took, err := l.coldList(ctx, home)
			if err != nil {
				return nil, err
			}
			*to = append(*to, took.Seconds()*1e3)
		}
	}
	return []row{
		{Part: "lists", Name: "100 servers, one hung, from the catalog", Value: median(known), Unit: "ms", Bar: 50},
		{Part: "lists", Name: "100 servers, one hung, empty catalog", Value: median(fresh), Unit: "ms", Bar: 150},
	}, nil
}

// coldList is the time from the start of `usher serve` to a list that is whole.
func (l *lab) coldList(ctx context.Context, home string) (time.Duration, error) {
	ctx, stop := context.WithTimeout(ctx, 30*time.Second)
	defer stop()
	cmd := exec.CommandContext(ctx, l.usher, "serve", "--surface", "direct")
	cmd.Env = process.SafeEnv(os.Environ(), map[string]string{"USHER_HOME": home})
	cmd.Dir = l.dir
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() {
		_ = in.Close() // which ends it
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	}()
	lines := wire.NewLines(out, 64<<20)
	for id := int64(1); ; id++ {
		if _, err := in.Write(append(mcp.AppendRequest(nil, mcp.IntID(id), mcp.MethodToolsList, []byte(`{`+modernMeta+`}`)), '\n')); err != nil {
			return 0, err
		}
		line, err := lines.Next()
		if err != nil {
			return 0, fmt.Errorf("usher serve: %w", err)
		}
		if bytes.Count(line, []byte(`__echo"`)) == healthy {
			return time.Since(began), nil
		}
	}
}

// thousandTools lists a thousand tools of one server.
func (l *lab) thousandTools(ctx context.Context) ([]row, error) {
	echo, err := l.startEcho(ctx, "-tools", "1000")
	if err != nil {
		return nil, err
	}
	defer echo.stop()
	home, err := l.home(map[string]string{"echo": at(echo.url + "mcp")})
	if err != nil {
		return nil, err
	}
	usher, err := l.startUsher(ctx, home)
	if err != nil {
		return nil, err
	}
	defer usher.stop()
	var rows []row
	for _, path := range []string{"direct/mcp", "servers/echo/mcp"} {
		ld := load{clients: 2, list: true}
		c := contestant{byUsher, usher, path}
		scores, err := l.duel(ctx, []contestant{c}, ld, pick(l, 5, 3), pick(l, time.Second, 400*time.Millisecond))
		if err == nil {
			err = l.profile(ctx, c, ld, "list-"+strings.ReplaceAll(path, "/", "-"))
		}
		if err != nil {
			return rows, err
		}
		cpu := of(scores[byUsher], func(s score) float64 { return s.cpu })
		rows = append(rows, row{Part: "lists", Name: "1,000 tools at /" + path + ", CPU", Value: cpu / 1e3, Unit: "ms", Bar: 1})
	}
	return rows, nil
}

// oneshot measures whole programs that make one call: ours and the least that the
// SDK makes possible.
func oneshot(ctx context.Context, l *lab) ([]row, error) {
	echo, err := l.startEcho(ctx)
	if err != nil {
		return nil, err
	}
	defer echo.stop()
	home, err := l.home(map[string]string{"echo": at(echo.url + "mcp"), "echo-child": program(l.echo, "-stdio")})
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, way := range []struct{ name, server, sdk string }{
		{"HTTP", "echo", echo.url + "mcp"}, {"stdio", "echo-child", l.echo + " -stdio"},
	} {
		var ours, theirs []single
		for i := range pick(l, 120, 7) {
			took, err := l.runOnce(ctx, home, l.usher, "call", way.server, "echo", "nonce=x", "--json")
			if err != nil {
				return rows, err
			}
			other, err := l.runOnce(ctx, home, l.sdk, strings.Fields(way.sdk)...)
			if err != nil {
				return rows, err
			}
			if i > 0 { // the first one learns the tools
				ours, theirs = append(ours, took), append(theirs, other)
			}
		}
		rows = append(rows, singleRows(way.name, ours, theirs)...)
	}
	return rows, nil
}

// single is one run of a program: the milliseconds until its result is there, and until
// it has ended.
type single struct{ result, end float64 }

func singleRows(way string, ours, theirs []single) []row {
	var rows []row
	for _, until := range []struct {
		name string
		of   func(single) float64
	}{
		{"to the result", func(s single) float64 { return s.result }},
		{"to the end", func(s single) float64 { return s.end }},
	} {
		var us, them []float64
		for i := range ours {
			us, them = append(us, until.of(ours[i])), append(them, until.of(theirs[i]))
		}
		rows = append(rows,
			row{Part: "oneshot", Name: "usher call over " + way + ", " + until.name, Value: median(us), Unit: "ms"},
			row{Part: "oneshot", Name: "SDK client over " + way + ", " + until.name, Value: median(them), Unit: "ms"},
			row{Part: "oneshot", Name: "usher over SDK client, " + way + ", " + until.name, Value: median(us) / median(them), Unit: "×", Bar: 2})
	}
	return rows
}

// runOnce runs a program that prints its result as one line.
func (l *lab) runOnce(ctx context.Context, home, program string, args ...string) (single, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = process.SafeEnv(os.Environ(), map[string]string{"USHER_HOME": home})
	cmd.Dir = l.dir
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return single{}, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return single{}, err
	}
	var s single
	line, err := bufio.NewReader(out).ReadBytes('\n')
	s.result = time.Since(began).Seconds() * 1e3
	if err == nil && !bytes.Contains(line, []byte(`"nonce":"x"`)) {
		err = errors.New("it printed no answer")
	}
	if ended := cmd.Wait(); ended != nil {
		err = ended
	}
	s.end = time.Since(began).Seconds() * 1e3
	if err != nil {
		return single{}, fmt.Errorf("%s: %w: %.300s%.300s", cmd, err, line, said.Bytes())
	}
	return s, nil
}
