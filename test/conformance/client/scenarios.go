package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/usher-mcp/usher/internal/jsonx"
)

// A scenario is what a person would do with the suite's server.
type scenario struct {
	act func(ctx context.Context, s session, d details) error
	// answer is what the person fills into a form that the server shows. Empty
	// accepts the form as it is, and usher fills in its defaults.
	answer string
}

// scenarios holds what is supported; the names are the suite's.
var scenarios = map[string]scenario{
	"initialize":                          {act: listTools},
	"request-metadata":                    {act: listTools},
	"json-schema-ref-no-deref":            {act: listTools},
	"tools_call":                          {act: callOne("add_numbers", `{"a":5,"b":3}`)},
	"sse-retry":                           {act: callOne("test_reconnection", `{}`)},
	"elicitation-sep1034-client-defaults": {act: callOne("test_client_elicitation_defaults", `{}`)},
	"sep-2322-client-request-state":       {act: echoState, answer: `{"confirmed":true}`},
	"http-standard-headers":               {act: useEverything},
	"http-custom-headers":                 {act: callAsTold},
	"http-invalid-tool-headers":           {act: callEveryTool},
	"json-schema-2020-12-preservation":    {act: echoSchema},
}

// A session is usher connected to the suite's server, by whichever way in.
type session interface {
	// list returns all items of a list method, raw.
	list(ctx context.Context, method string) ([][]byte, error)
	// request sends one request and returns its result, raw.
	request(ctx context.Context, method string, params []byte) ([]byte, error)
	close() error
}

func listTools(ctx context.Context, s session, _ details) error {
	_, err := s.list(ctx, "tools/list")
	return err
}

// callOne lists the tools and calls one of them.
func callOne(name, arguments string) func(context.Context, session, details) error {
	return func(ctx context.Context, s session, d details) error {
		if err := listTools(ctx, s, d); err != nil {
			return err
		}
		return call(ctx, s, name, []byte(arguments))
	}
}

// listThenCall lists the tools and calls one, whether or not the list worked: a
// person who is refused tries again. Who was let in looks once more, since usher keeps
// its connection where the reference clients ask for one each time.
func listThenCall(ctx context.Context, s session, d details) error {
	if err := errors.Join(listTools(ctx, s, d), call(ctx, s, "test-tool", []byte(`{}`))); err != nil {
		return err
	}
	return listTools(ctx, s, d)
}

// echoState calls tools that answer with a state to be sent back. One of them
// answers with something that is no result; what usher makes of it is its own
// affair, the suite looks at what is sent.
func echoState(ctx context.Context, s session, d details) error {
	if err := listTools(ctx, s, d); err != nil {
		return err
	}
	for _, name := range []string{"test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_unrelated", "test_mrtr_no_result_type"} {
		if err := call(ctx, s, name, []byte(`{}`)); err != nil && ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// useEverything uses the first tool, resource and prompt.
func useEverything(ctx context.Context, s session, _ details) error {
	for _, kind := range []struct{ list, use, key string }{
		{"tools/list", "tools/call", "name"},
		{"resources/list", "resources/read", "uri"},
		{"prompts/list", "prompts/get", "name"},
	} {
		items, err := s.list(ctx, kind.list)
		if err != nil {
			return err
		}
		if len(items) == 0 {
			return fmt.Errorf("%s: the server has none", kind.list)
		}
		id, ok := jsonx.Get(items[0], kind.key)
		if !ok {
			return fmt.Errorf("%s: the first item has no %s", kind.list, kind.key)
		}
		if _, err := s.request(ctx, kind.use, jsonx.Set(nil, kind.key, id)); err != nil {
			return fmt.Errorf("%s %s: %w", kind.use, id, err)
		}
	}
	return nil
}

// callAsTold makes the calls that the suite's context lists.
func callAsTold(ctx context.Context, s session, d details) error {
	if len(d.ToolCalls) == 0 {
		return errors.New("MCP_CONFORMANCE_CONTEXT lists no tool calls")
	}
	if err := listTools(ctx, s, d); err != nil {
		return err
	}
	for _, c := range d.ToolCalls {
		if err := call(ctx, s, c.Name, c.Arguments); err != nil {
			return err
		}
	}
	return nil
}

// callEveryTool calls whatever usher lists; usher hides tools whose header
// annotations are invalid.
func callEveryTool(ctx context.Context, s session, _ details) error {
	tools, err := s.list(ctx, "tools/list")
	if err != nil {
		return err
	}
	for _, tool := range tools {
		name, _ := jsonx.Get(tool, "name")
		if err := callRaw(ctx, s, name, []byte(`{"region":"us-west1"}`)); err != nil {
			return err
		}
	}
	return nil
}

// echoSchema sends a tool's schema back as it came.
func echoSchema(ctx context.Context, s session, _ details) error {
	tools, err := s.list(ctx, "tools/list")
	if err != nil {
		return err
	}
	for _, tool := range tools {
		if jsonx.GetText(tool, "name") != "json_schema_2020_12_tool" {
			continue
		}
		schema, ok := jsonx.Get(tool, "inputSchema")
		if !ok {
			return errors.New("json_schema_2020_12_tool has no inputSchema")
		}
		return call(ctx, s, "json_schema_echo", jsonx.Set(nil, "schema", schema))
	}
	return errors.New("the server lists no json_schema_2020_12_tool")
}

func call(ctx context.Context, s session, name string, arguments []byte) error {
	return callRaw(ctx, s, jsonx.Quote(name), arguments)
}

// callRaw calls the tool whose name is the given JSON string.
func callRaw(ctx context.Context, s session, name, arguments []byte) error {
	params := jsonx.Set(nil, "name", name)
	if arguments != nil {
		params = jsonx.Set(params, "arguments", arguments)
	}
	if _, err := s.request(ctx, "tools/call", params); err != nil {
		return fmt.Errorf("call %s: %w", name, err)
	}
	return nil
}
