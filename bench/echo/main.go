// Command echo is the MCP server that the benchmarks call. It speaks the legacy and the
// stateless protocol over HTTP or stdio, at the lowest possible cost.
//
// It answers a handful of methods fast and correctly and implements nothing else of
// MCP. Do not take it as an example of how to write a server.
//
// Flow: main picks the transport (http.go, stdio.go); both hand each message to
// answer (answer.go), which echoes the nonce of a call so that answers that reach
// the wrong caller are noticed.
//
// Over HTTP every path is a server of its own with the same tools, except /hang/…,
// which never answers.
package main

import (
	"flag"
	"fmt"
	"net"
	"os"
)

func main() {
	var e echo
	stdio := flag.Bool("stdio", false, "serve standard input and output")
	flag.BoolVar(&e.legacy, "legacy", false, "speak the legacy protocol only")
	tools := flag.Int("tools", 1, "how many tools to list")
	flag.IntVar(&e.ttl, "ttl", 60_000, "for how many milliseconds a list is good")
	flag.Parse()
	e.list = toolList(*tools)
	if err := serve(&e, *stdio); err != nil {
		fmt.Fprintln(os.Stderr, "echo:", err)
		os.Exit(1)
	}
}

func serve(e *echo, stdio bool) error {
	if stdio {
		return e.serveStdio(os.Stdin, os.Stdout)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/\n", l.Addr())
	return e.serveHTTP(l)
}
