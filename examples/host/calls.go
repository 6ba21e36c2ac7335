package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/usher-mcp/usher"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
)

// tools is the definition of the program's own server.
func tools(version ...string) config.Server {
	return config.Server{Name: "tools", Command: os.Args[0], Args: append([]string{"server"}, version...)}
}

// spawn adds a server and lists its tools.
func spawn(ctx context.Context, h *usher.Host, out io.Writer) error {
	if err := h.Spawn(ctx, tools(), nil); err != nil {
		return err
	}
	list, err := h.Tools(ctx, "tools")
	if err != nil {
		return err
	}
	for _, t := range list.Tools {
		fmt.Fprintln(out, "tool:", t.Name)
	}
	return nil
}

// progress calls a tool and shows how far it is.
func progress(ctx context.Context, h *usher.Host, out io.Writer) error {
	raw, err := h.Call(ctx, "tools", "copy", []byte(`{"path": "a.txt"}`), &usher.CallOptions{
		OnNotification: func(m mcp.Message) {
			var p struct{ Progress, Total float64 }
			if m.Method == mcp.MethodNotifyProgress && json.Unmarshal(m.Params, &p) == nil {
				fmt.Fprintf(out, "progress: %v of %v\n", p.Progress, p.Total)
			}
		},
	})
	if err != nil {
		return err
	}
	result, err := usher.ParseResult(raw)
	fmt.Fprintln(out, "result:", result.Text(), result.IsError)
	return err
}

// ask calls a tool that asks the user something before it answers. The host has to be
// opened with the capability to elicit.
func ask(ctx context.Context, h *usher.Host, out io.Writer) error {
	raw, err := h.Call(ctx, "tools", "greet", nil, &usher.CallOptions{
		Answer: func(_ context.Context, method string, params []byte) ([]byte, *mcp.Error) {
			var question struct{ Message string }
			if method != mcp.MethodElicit || json.Unmarshal(params, &question) != nil {
				return nil, mcp.Errorf(mcp.CodeMethodNotFound, "%s is not supported", method)
			}
			fmt.Fprintln(out, "question:", question.Message)
			return []byte(`{"action": "accept", "content": {"name": "Ada"}}`), nil
		},
	})
	if err != nil {
		return err
	}
	result, err := usher.ParseResult(raw)
	fmt.Fprintln(out, "answer:", result.Text())
	return err
}

// restart lets the server crash. The call that was in flight is not repeated; the next
// one finds the server restarted, and the events say so.
func restart(ctx context.Context, h *usher.Host, out io.Writer) error {
	events := h.Events(0)
	defer events.Close()
	_, err := h.Call(ctx, "tools", "crash", nil, nil)
	if info, ok := usher.ErrorInfo(err); ok {
		fmt.Fprintln(out, "error:", info.Kind, info.Server)
	}
	if _, err := h.Call(ctx, "tools", "copy", nil, nil); err != nil {
		return err
	}
	for e := range events.All(ctx) {
		if e, ok := e.(event.ServerChanged); ok {
			fmt.Fprintln(out, "server:", e.Server, e.To)
			if e.To == "connected" {
				break
			}
		}
	}
	return nil
}

// pins replaces the server by one whose tool has another description. The tool is blocked
// until somebody accepts it; a lock file finds the change as well.
func pins(ctx context.Context, h *usher.Host, out io.Writer) error {
	lock, err := h.Pins().Lock(ctx, "tools")
	if err != nil {
		return err
	}
	if err := h.Replace(ctx, tools("second"), nil); err != nil {
		return err
	}
	_, err = h.Call(ctx, "tools", "copy", nil, nil)
	if info, _ := usher.ErrorInfo(err); info.Kind == usher.KindSchemaChanged {
		fmt.Fprintln(out, "blocked:", info.Server)
	}
	current, err := h.Pins().Current(ctx)
	if err != nil {
		return err
	}
	for _, finding := range lock.Verify(current) {
		fmt.Fprintln(out, "lock:", finding)
	}
	accepted, err := h.Pins().Accept(ctx, "tools", "copy", "")
	fmt.Fprintln(out, "accepted:", accepted)
	return err
}

// hook adds a policy of the program's own, which sees the arguments.
func hook(ctx context.Context, h *usher.Host, out io.Writer) error {
	h.SetHook(func(_ context.Context, r policy.HookRequest) policy.Decision {
		secret := strings.Contains(string(r.Arguments), "secret")
		return policy.Decision{Allow: !secret, Reason: "this program keeps its secrets"}
	})
	defer h.SetHook(nil)
	_, err := h.Call(ctx, "tools", "copy", []byte(`{"path": "secret.txt"}`), nil)
	if !errors.Is(err, policy.ErrDenied) {
		return fmt.Errorf("the hook was not asked: %w", err)
	}
	info, _ := usher.ErrorInfo(err)
	fmt.Fprintln(out, "hook:", info.Kind, info.Text)
	return nil
}

// discover counts the tools of all servers as they arrive, and the servers that have none
// to show because they require a login.
func discover(ctx context.Context, h *usher.Host, out io.Writer) error {
	count := map[string]int{}
	for row := range h.Discover(ctx) {
		if info, failed := usher.ErrorInfo(row.Err); failed {
			count[string(info.Kind)]++
			continue
		}
		count[row.Server]++
	}
	fmt.Fprintln(out, "discovered:", count)
	return nil
}

// cache calls a tool whose result may be cached, several times.
func cache(ctx context.Context, h *usher.Host, out io.Writer) error {
	for range 3 {
		if _, err := h.Call(ctx, "open", "ttl", []byte(`{"ms": 60000}`), nil); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "cache hits:", h.CacheStats().Hits > 0)
	return nil
}
