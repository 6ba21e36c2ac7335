package usher_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/usher-mcp/usher"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/policy"
)

// A program that hosts a server of its own choosing: it reads no file and writes none.
func ExampleOpen() {
	url, stop := startMath() // any MCP server
	defer stop()

	ctx := context.Background()
	h, err := usher.Open(ctx, usher.Ephemeral())
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	if err := h.Spawn(ctx, config.Server{Name: "math", Transport: config.TransportHTTP, URL: url}, nil); err != nil {
		log.Fatal(err)
	}
	raw, err := h.Call(ctx, "math", "add", []byte(`{"a": 20, "b": 22}`), nil)
	if err != nil {
		log.Fatal(err)
	}
	result, err := usher.ParseResult(raw)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Text())
	// Output: 42
}

// A budget for one task: all calls with the context share it.
func ExampleHost_Call_budget() {
	url, stop := startMath()
	defer stop()

	h, err := usher.Open(context.Background(), usher.Ephemeral())
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	ctx := policy.WithBudget(context.Background(), 1)
	if err := h.Spawn(ctx, config.Server{Name: "math", Transport: config.TransportHTTP, URL: url}, nil); err != nil {
		log.Fatal(err)
	}
	for range 2 {
		_, err := h.Call(ctx, "math", "add", []byte(`{"a": 20, "b": 22}`), nil)
		fmt.Println(errors.Is(err, policy.ErrBudget))
	}
	// Output:
	// false
	// true
}

func startMath() (url string, stop func()) {
	url, stop, err := fake.New(&fake.Options{Name: "math"}).Listen()
	if err != nil {
		log.Fatal(err)
	}
	return url + "/mcp", stop
}
