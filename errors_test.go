package usher_test

import (
	"context"
	"errors"
	"regexp"
	"testing"

	"github.com/usher-mcp/usher"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/policy"
)

// command matches a command line of the usher program.
var command = regexp.MustCompile(`\busher [a-z]`)

// noCommands wants no command line in what a program shows of an error: neither in its
// data nor, once errors keep their hints apart from their text, in its text.
func noCommands(t *testing.T, err error) {
	t.Helper()
	info, _ := usher.ErrorInfo(err)
	texts := []string{info.Text, info.Hint}
	if _, apart := any(&host.Error{}).(interface{ Hint() string }); apart {
		texts = append(texts, err.Error())
	}
	for _, text := range texts {
		if command.MatchString(text) {
			t.Errorf("a command line: %s", text)
		}
	}
}

// Errors are data: kind, server, hint, and the code and data of the server's answer. No
// text that a program shows has a command line of the usher program in it.
func TestErrorInfo(t *testing.T) {
	h := opened(t, nil)
	math, _ := server(t, "math")
	spawned(t, h, math)
	spawned(t, h, protected(t, "notes", authServer(t)),
		config.Server{Name: "broken", Command: "sh", Args: []string{"-c", "exit 3"}},
		config.Server{Name: "off", Command: "sh", Disabled: true})
	if _, err := h.Call(t.Context(), "math", "echo", nil, nil); err != nil {
		t.Fatal(err)
	}
	call := func(server, tool, args string) error {
		_, err := h.Call(t.Context(), server, tool, []byte(args), nil)
		return err
	}
	for _, tt := range []struct {
		name   string
		err    error
		kind   usher.Kind
		server string
		code   int64
	}{
		{"unknown server", call("nope", "x", ""), usher.KindUnknownServer, "nope", 0},
		{"near a server", call("maths", "x", ""), usher.KindUnknownServer, "maths", 0},
		{"unknown tool", call("math", "ad", ""), usher.KindUnknownTool, "math", 0},
		{"needs a login", call("notes", "echo", ""), usher.KindNeedsLogin, "notes", 0},
		{"does not start", call("broken", "x", ""), usher.KindUnavailable, "broken", 0},
		{"disabled", call("off", "x", ""), usher.KindOff, "off", 0},
		{"the server's own error", call("math", "rpcerror", `{"code":-32099}`), usher.KindAnswer, "math", -32099},
		{"invalid", h.Spawn(t.Context(), config.Server{Name: "x"}, nil), usher.KindInvalid, "x", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			info, ok := usher.ErrorInfo(tt.err)
			if !ok || info.Kind != tt.kind || info.Server != tt.server || info.Code != tt.code {
				t.Errorf("%+v, %v of %v", info, ok, tt.err)
			}
			noCommands(t, tt.err)
		})
	}
	for _, err := range []error{nil, errors.New("of the program")} {
		if info, ok := usher.ErrorInfo(err); ok {
			t.Errorf("%v is %+v", err, info)
		}
	}
}

// A changed tool and a spent budget.
func TestErrorInfoOfPolicy(t *testing.T) {
	h := opened(t, nil)
	math, _ := server(t, "math")
	spawned(t, h, math)
	ctx := policy.WithBudget(context.WithoutCancel(t.Context()), 1)
	_, _ = h.Call(ctx, "math", "mutate", nil, nil)
	_, err := h.Call(ctx, "math", "echo", nil, nil)
	if info, _ := usher.ErrorInfo(err); info.Kind != usher.KindBudget || info.Hint == "" {
		t.Errorf("%+v, %v", info, err)
	}
	if err := h.Reload(t.Context(), "math"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Tools(t.Context(), "math"); err != nil {
		t.Fatal(err)
	}
	_, err = h.Call(t.Context(), "math", "echo", nil, nil)
	info, _ := usher.ErrorInfo(err)
	if info.Kind != usher.KindSchemaChanged || info.Server != "math" {
		t.Errorf("%+v, %v", info, err)
	}
	noCommands(t, err)
	pins, err := h.Pins().List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	changed := 0
	for _, p := range pins {
		if p.State == "changed" {
			changed++
		}
	}
	if changed != 1 {
		t.Errorf("%d changed tools", changed)
	}
	if _, err := h.Pins().Accept(t.Context(), "math", "echo", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Call(t.Context(), "math", "echo", nil, nil); err != nil {
		t.Error(err)
	}
	if len(h.Status().Servers) != 1 || h.Status().Servers[0].State != host.Connected {
		t.Errorf("%+v", h.Status())
	}
}
