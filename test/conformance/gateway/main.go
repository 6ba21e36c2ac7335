// Command gateway is what the conformance suite talks to when it judges usher as a
// server: the gateway with one fixture behind it. It prints its base URL and ends
// with its standard input.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/process"
)

func main() {
	process.Main()
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	fs := flag.NewFlagSet("gateway", flag.ContinueOnError)
	name := fs.String("name", "conf", "`name` of the server behind it")
	url := fs.String("url", "", "`URL` of the server; else the arguments are its command")
	addr := fs.String("listen", "127.0.0.1:0", "`address` to serve on")
	verbose := fs.Bool("v", false, "log to standard error")
	if err := fs.Parse(args); err != nil {
		return err
	}
	srv := config.Server{Name: *name, Transport: config.TransportHTTP, URL: *url}
	if *url == "" {
		if fs.NArg() == 0 {
			return fmt.Errorf("neither a URL nor a command")
		}
		srv = config.Server{Name: *name, Transport: config.TransportStdio, Command: fs.Arg(0), Args: fs.Args()[1:]}
	}
	level := slog.LevelError
	if *verbose {
		level = slog.LevelDebug
	}
	s, err := newStack(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})), srv)
	if err != nil {
		return err
	}
	defer s.close()
	l, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "http://"+l.Addr().String())
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, in) // its end is all that matters
		cancel()
	}()
	return s.gateway.Serve(ctx, l, nil)
}
