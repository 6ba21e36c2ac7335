// Command host embeds usher in a program of its own module, with public packages only:
// progress, elicitation, restarts, discovery, cache, pins, a policy hook, logins and a
// gateway. docs/embedding.md explains each function.
//
// Its own stdio server is the program itself, started as "host server". The servers over
// HTTP are given by the environment: OPEN_URL needs no login, LOGIN_URLS
// (name=URL,name=URL) do. Without them those parts are left out.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/usher-mcp/usher"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/process"
)

func main() {
	process.Main() // first: the program also supervises its own child processes
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	var err error
	if len(os.Args) > 1 && os.Args[1] == "server" {
		err = serveTools(ctx, len(os.Args) > 2)
	} else {
		err = run(ctx, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// open returns a host that reads no files and writes nothing to disk.
func open(ctx context.Context) (*usher.Host, error) {
	opt := usher.Ephemeral()
	opt.Executable = usher.Executable()                 // children end with the program
	opt.Capabilities = []byte(`{"elicitation":{}}`)     // see ask
	opt.ClientName, opt.ClientVersion = "example", "v1" // what servers are told
	return usher.Open(ctx, opt)
}

func run(ctx context.Context, out io.Writer) (err error) {
	h, err := open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	steps := []func(context.Context, *usher.Host, io.Writer) error{spawn, progress, ask, restart, pins, hook}
	if at := os.Getenv("OPEN_URL"); at != "" {
		if err := h.Spawn(ctx, config.Server{Name: "open", URL: at, Transport: config.TransportHTTP}, nil); err != nil {
			return err
		}
		steps = append(steps, discover, cache, serve)
	}
	if all := os.Getenv("LOGIN_URLS"); all != "" {
		for one := range strings.SplitSeq(all, ",") {
			name, at, _ := strings.Cut(one, "=")
			if err := h.Spawn(ctx, config.Server{Name: name, URL: at, Transport: config.TransportHTTP}, &host.SpawnOptions{Lazy: true}); err != nil {
				return err
			}
		}
		steps = append(steps, loginOne, loginAll)
	}
	for _, step := range steps {
		if err := step(ctx, h, out); err != nil {
			return err
		}
	}
	return nil
}
