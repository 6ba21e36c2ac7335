package standin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/signal"
	"regexp"
	"time"

	"github.com/usher-mcp/usher/internal/fake"
)

// Locked serves an MCP server that wants a login, on the given loopback address,
// until it is interrupted. The authorization server beside it agrees to everything.
func Locked(args []string, out, errw io.Writer) int {
	if err := locked(args, out); err != nil {
		fmt.Fprintln(errw, err)
		return 1
	}
	return 0
}

func locked(args []string, out io.Writer) error {
	addr := "127.0.0.1:0"
	if len(args) > 0 {
		addr = args[0]
	}
	as := fake.NewAuth(&fake.AuthOptions{Scopes: []string{"read"}})
	_, stop, err := as.Listen()
	if err != nil {
		return err
	}
	defer stop()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	base := "http://" + l.Addr().String()
	mcp := fake.New(&fake.Options{Name: "tickets", Tools: tickets()})
	defer mcp.Close()
	mux := http.NewServeMux()
	mux.Handle("/mcp", mcp.Handler())
	srv := &http.Server{
		Handler:           as.Protect(&fake.Protected{Resource: base + "/mcp", Scopes: []string{"read"}}, mux),
		ReadHeaderTimeout: 10 * time.Second,
	}
	ctx, end := signal.NotifyContext(context.Background(), os.Interrupt)
	defer end()
	context.AfterFunc(ctx, func() { _ = srv.Close() })
	fmt.Fprintln(out, base+"/mcp")
	_ = srv.Serve(l) // it ends by being closed
	return nil
}

func tickets() []fake.Tool {
	find := func(context.Context, *fake.Call) ([]byte, error) {
		return fake.TextResult("1 open ticket: the door sticks"), nil
	}
	return []fake.Tool{tool("find_tickets", "Find tickets by words.",
		`{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}`, `{"readOnlyHint":true}`, find)}
}

// Visit plays a browser whose person agrees: it opens an address, follows where it
// is sent, and clicks every consent that the page offers.
func Visit(args []string, errw io.Writer) int {
	if len(args) == 2 && args[0] == "--end" {
		return visitEnd(args[1], errw)
	}
	if len(args) != 1 {
		fmt.Fprintln(errw, "usage: visit ADDRESS")
		return 2
	}
	if err := visit(args[0]); err != nil {
		fmt.Fprintln(errw, err)
		return 1
	}
	return 0
}

// visitEnd prints the address that the browser ends at, without going there, as when it
// is on another machine.
func visitEnd(address string, errw io.Writer) int {
	client := &http.Client{Timeout: 30 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Get(address)
	if err != nil {
		fmt.Fprintln(errw, err)
		return 1
	}
	_ = answer.Body.Close()
	fmt.Println(answer.Header.Get("Location"))
	return 0
}

var consent = regexp.MustCompile(`href="([^"]*/authorize\?[^"]*)"`)

func visit(address string) error {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: 30 * time.Second, Jar: jar}
	for todo := []string{address}; len(todo) > 0; todo = todo[1:] {
		answer, err := client.Get(todo[0])
		if err != nil {
			return err
		}
		page, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %w", answer.Status, cmp.Or(err, errors.New("not a page")))
		}
		for _, link := range consent.FindAllSubmatch(page, -1) {
			todo = append(todo, html.UnescapeString(string(link[1])))
		}
	}
	return nil
}
