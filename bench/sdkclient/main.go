// Command sdkclient is the least program that calls one tool with the official SDK:
// what a one-shot `usher call` is compared with.
//
// It owns nothing but that; it refuses to be more. Flow: connect, call, print, leave.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// main takes the address of a server, or a command that starts one.
func main() {
	if err := call(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sdkclient:", err)
		os.Exit(1)
	}
}

func call(ctx context.Context, target []string) error {
	var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: target[0]}
	if len(target) > 1 {
		transport = &mcp.CommandTransport{Command: exec.Command(target[0], target[1:]...)}
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "sdkclient", Version: "1"}, nil).Connect(ctx, transport, nil)
	if err != nil {
		return err
	}
	defer session.Close()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "echo", Arguments: json.RawMessage(`{"nonce":"x"}`)})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}
