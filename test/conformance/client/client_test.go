package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/usher-mcp/usher/mcp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParse(t *testing.T) {
	const url = "http://127.0.0.1:1/mcp"
	tests := []struct {
		name    string
		args    []string
		env     map[string]string
		wantErr string // empty: none
		usage   bool
	}{
		{"plain", []string{url}, scene("initialize"), "", false},
		{"flags", []string{"--via", "gateway", "--login", "paste", url}, scene("tools_call"), "", false},
		{"no URL", nil, scene("initialize"), "want one URL", true},
		{"unknown flag", []string{"--colour", url}, scene("initialize"), "colour", true},
		{"unknown login", []string{"--login", "guess", url}, scene("initialize"), "--login guess", true},
		{"no scenario", []string{url}, nil, "MCP_CONFORMANCE_SCENARIO is not set", true},
		{"unknown scenario", []string{url}, scene("juggling"), `unknown scenario "juggling"`, true},
		{"broken context", []string{url}, map[string]string{"MCP_CONFORMANCE_CONTEXT": "{"}, "read MCP_CONFORMANCE_CONTEXT", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parse(tt.args, func(k string) string { return tt.env[k] }, io.Discard)
			switch {
			case tt.wantErr == "" && err != nil:
				t.Fatalf("error %v, want none", err)
			case tt.wantErr == "":
				if got.url != url || got.scenario.act == nil {
					t.Errorf("task %+v is not complete", got)
				}
			case err == nil || !strings.Contains(err.Error(), tt.wantErr):
				t.Errorf("error %v, want %q", err, tt.wantErr)
			case errors.Is(err, errUsage) != tt.usage:
				t.Errorf("error %v: usage error %v, want %v", err, !tt.usage, tt.usage)
			}
		})
	}
}

func scene(name string) map[string]string {
	return map[string]string{"MCP_CONFORMANCE_SCENARIO": name}
}

// scripted is a server that lists the given items and writes down requests.
type scripted struct {
	items map[string][]string
	asked []string
	fail  string // tool whose call fails
}

func (s *scripted) list(_ context.Context, method string) ([][]byte, error) {
	s.asked = append(s.asked, method)
	var all [][]byte
	for _, item := range s.items[method] {
		all = append(all, []byte(item))
	}
	return all, nil
}

func (s *scripted) request(_ context.Context, method string, params []byte) ([]byte, error) {
	s.asked = append(s.asked, method+" "+string(params))
	if s.fail != "" && strings.Contains(string(params), s.fail) {
		return nil, fmt.Errorf("no such tool")
	}
	return []byte(`{}`), nil
}

func (s *scripted) close() error { return nil }

func TestActions(t *testing.T) {
	tests := []struct {
		name, scenario string
		server         scripted
		want           []string
		wantErr        string
	}{
		{
			"schema goes back to the byte", "json-schema-2020-12-preservation",
			scripted{items: map[string][]string{"tools/list": {`{"name":"x"}`, `{"inputSchema":{"$defs": {"a":1e0}},"name":"json_schema_2020_12_tool"}`}}},
			[]string{"tools/list", `tools/call {"name":"json_schema_echo","arguments":{"schema":{"$defs": {"a":1e0}}}}`},
			"",
		},
		{"schema tool missing", "json-schema-2020-12-preservation", scripted{}, []string{"tools/list"}, "lists no json_schema_2020_12_tool"},
		{
			"everything once", "http-standard-headers",
			scripted{items: map[string][]string{"tools/list": {`{"name":"t"}`}, "resources/list": {`{"uri":"u://1"}`}, "prompts/list": {`{"name":"p"}`, `{"name":"q"}`}}},
			[]string{
				"tools/list", `tools/call {"name":"t"}`, "resources/list", `resources/read {"uri":"u://1"}`,
				"prompts/list", `prompts/get {"name":"p"}`,
			},
			"",
		},
		{"nothing to use", "http-standard-headers", scripted{}, []string{"tools/list"}, "the server has none"},
		{
			"a call that fails", "tools_call",
			scripted{fail: "add_numbers"},
			[]string{"tools/list", `tools/call {"name":"add_numbers","arguments":{"a":5,"b":3}}`},
			`call "add_numbers": no such tool`,
		},
		{"no calls told", "http-custom-headers", scripted{}, nil, "lists no tool calls"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := scenarios[tt.scenario].act(t.Context(), &tt.server, details{})
			if diff := cmp.Diff(tt.want, tt.server.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if (tt.wantErr == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("error %v, want %q", err, tt.wantErr)
			}
		})
	}
}

// An agent reads from usher's answer whether a person has to log in, and where.
func TestWantsLogin(t *testing.T) {
	inText := mcp.Errorf(mcp.CodeInternal, "s requires login.\n\nAsk the user to open http://127.0.0.1:1/a?b=c.\n\nMake the same call again when the user has finished.")
	byURL := mcp.Errorf(mcp.CodeURLElicitation, "s requires login")
	byURL.Data = []byte(`{"elicitations":[{"mode":"url","url":"https://x/y"}]}`)
	for _, tt := range []struct {
		name   string
		result string
		err    error
		page   string
		needed bool
	}{
		{"a result", `{"content":[{"type":"text","text":"fine, see https://x"}]}`, nil, "", false},
		{"a tool's error", `{"content":[{"type":"text","text":"Open https://x/y?z=1. Make the same call again."}],"isError":true}`, nil, "https://x/y?z=1", true},
		{"nobody is needed", `{"content":[{"type":"text","text":"done. Make the same call again."}],"isError":true}`, nil, "", true},
		{"an error with a text", "", inText, "http://127.0.0.1:1/a?b=c", true},
		{"an error with a URL", "", byURL, "https://x/y", true},
		{"another error", "", errors.New("no"), "", false},
	} {
		page, needed := wantsLogin([]byte(tt.result), tt.err)
		if page != tt.page || needed != tt.needed {
			t.Errorf("%s: %q, %v", tt.name, page, needed)
		}
	}
}
