package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"runtime"
	"strings"
	"sync"

	"github.com/usher-mcp/usher/cli"
	"github.com/usher-mcp/usher/internal/fake"
)

// runRole runs this program as one of the contestants, when its arguments say so.
// Each contestant says on standard output where it serves, then where its own
// figures are to be had.
func runRole(args []string) (code int, is bool) {
	if len(args) == 0 {
		return 0, false
	}
	switch role, rest := args[0], args[1:]; role {
	case "polite":
		return asExit(becomePolite(rest)), true
	case "child-fake":
		return fake.Main(rest, os.Stdin, os.Stdout, os.Stderr), true
	case "child-bare":
		return asExit(serveBare(rest[0])), true
	case "child-sdk":
		return asExit(serveSDK(rest[0], len(rest) > 1)), true
	case "child-logins":
		return asExit(serveLogins(rest)), true
	case "child-usher":
		return serveUsher(rest), true
	}
	return 0, false
}

func asExit(err error) int {
	fmt.Fprintln(os.Stderr, "bench:", err)
	return 1
}

// listenAndTell serves h and tells where, until the process is ended.
func listenAndTell(h http.Handler) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	figures, err := serveFigures()
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/\n%s\n", l.Addr(), figures)
	return http.Serve(l, h)
}

// serveUsher is the usher command itself. It runs within this program only so that
// its allocations and profiles can be asked for.
func serveUsher(args []string) int {
	figures, err := serveFigures()
	if err != nil {
		return asExit(err)
	}
	world := cli.System()
	world.Err = &announcer{to: world.Err, figures: figures}
	return cli.Main(args, world)
}

// announcer tells the address that usher writes to standard error.
type announcer struct {
	to      io.Writer
	figures string
	once    sync.Once
}

func (a *announcer) Write(p []byte) (int, error) {
	if rest, ok := strings.CutPrefix(string(p), "serving "); ok {
		url, _, _ := strings.Cut(rest, "/mcp")
		a.once.Do(func() { fmt.Printf("%s/\n%s\n", url, a.figures) })
	}
	return a.to.Write(p)
}

// figures are what a contestant knows of itself.
type figures struct {
	CPU     float64 `json:"cpu"` // seconds of processor time so far
	Mallocs uint64  `json:"mallocs"`
	Bytes   uint64  `json:"bytes"` // allocated so far
}

// serveFigures tells them, and profiles, on a port of its own.
func serveFigures() (url string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/figures", func(w http.ResponseWriter, _ *http.Request) {
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		_ = json.NewEncoder(w).Encode(figures{processorTime(), mem.Mallocs, mem.TotalAlloc})
	})
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	go func() { _ = http.Serve(l, mux) }() // for as long as the process lives
	return "http://" + l.Addr().String(), nil
}
