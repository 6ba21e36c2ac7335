package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/usher-mcp/usher/internal/fake"
)

// The servers of the login part.
const (
	loginServers = 50
	loginIssuers = 10
)

// serveLogins serves fifty servers that want logins at ten authorization servers,
// and tells their addresses, in the order of their numbers, on one line. Every answer
// takes the given time. Mixed, answers of a server take up to four times as long as
// those of another, five servers are broken, and the last one never answers.
func serveLogins(args []string) error {
	mixed := args[0] == "mixed"
	latency := 50 * time.Millisecond
	if ms, err := strconv.Atoi(args[0]); err == nil {
		latency = time.Duration(ms) * time.Millisecond
	}
	var issuers []*fake.AuthServer
	for range loginIssuers {
		as := fake.NewAuth(nil)
		base, err := serveSlowly(as.Handler(), latency)
		if err != nil {
			return err
		}
		as.Serve(base)
		issuers = append(issuers, as)
	}
	var urls []string
	for i := range loginServers {
		p := &fake.Protected{}
		wait := latency
		if mixed {
			wait = time.Duration(30+i*37%90) * time.Millisecond
			if i%10 == 9 {
				p.Servers = []string{issuers[i%loginIssuers].Issuer() + "/nowhere"}
			}
		}
		h := issuers[i%loginIssuers].Protect(p, http.NotFoundHandler())
		if mixed && i == loginServers-1 {
			h = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		}
		base, err := serveSlowly(h, wait)
		if err != nil {
			return err
		}
		p.Resource = base + "/mcp"
		urls = append(urls, p.Resource)
	}
	fmt.Println(strings.Join(urls, ","))
	_, _ = os.Stdin.Read(make([]byte, 1)) // until the parent goes
	return nil
}

// serveSlowly serves h on a free port, each answer after a while.
func serveSlowly(h http.Handler, wait time.Duration) (base string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
			h.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
	go func() { _ = (&http.Server{Handler: slow, ReadHeaderTimeout: 10 * time.Second}).Serve(l) }() // ends with the process
	return "http://" + l.Addr().String(), nil
}
