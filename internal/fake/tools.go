package fake

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
)

// DefaultTools returns the tools of a server that was given none.
func DefaultTools() []Tool {
	return []Tool{
		tool("echo", "Returns its arguments", `{"type":"object"}`, echo, `"annotations":{"readOnlyHint":true}`),
		tool("add", "Adds two numbers", `{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}`, add,
			`"outputSchema":{"type":"object","properties":{"sum":{"type":"number"}},"required":["sum"]}`, `"annotations":{"readOnlyHint":true,"idempotentHint":true}`),
		tool("slow", "Takes a while and tells how far it is", `{"type":"object","properties":{"ms":{"type":"integer"},"steps":{"type":"integer"}}}`, slow),
		tool("ask", "Asks the person a question", `{"type":"object","properties":{"message":{"type":"string"},"url":{"type":"string"}}}`, ask),
		tool("sample", "Asks the model a question", `{"type":"object","properties":{"prompt":{"type":"string"}}}`, sample),
		tool("roots", "Lists the roots of the client", `{"type":"object"}`, roots),
		tool("fail", "Fails", `{"type":"object","properties":{"message":{"type":"string"}}}`, fail),
		tool("rpcerror", "Answers with a JSON-RPC error", `{"type":"object","properties":{"code":{"type":"integer"},"message":{"type":"string"}}}`, rpcError),
		tool("log", "Sends log messages", `{"type":"object","properties":{"count":{"type":"integer"}}}`, logs),
		tool("pay", "Pays a bill, once per call", `{"type":"object","properties":{"id":{"type":"string"},"ms":{"type":"integer"}},"required":["id"]}`, pay,
			`"annotations":{"destructiveHint":true,"idempotentHint":false}`),
		tool("crash", "Exits before or after paying", `{"type":"object","properties":{"when":{"enum":["before","after"]},"id":{"type":"string"}}}`, crash),
		tool("ttl", "Returns a result that may be kept", `{"type":"object","properties":{"ms":{"type":"integer"},"scope":{"type":"string"}}}`, ttl, `"annotations":{"readOnlyHint":true}`),
		tool("region", "Tells which headers came with the arguments",
			`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"shard":{"type":"integer","x-mcp-header":"Shard"},"dry":{"type":"boolean","x-mcp-header":"Dry"},"query":{"type":"string"}}}`, region),
		tool("big", "Returns a text of that many bytes", `{"type":"object","properties":{"bytes":{"type":"integer"}}}`, big),
		tool("image", "Returns a picture", `{"type":"object"}`, image),
		tool("mutate", "Changes the definition of echo", `{"type":"object"}`, mutate),
		tool("env", "Returns the arguments, directory and environment of the process", `{"type":"object"}`, env),
		tool("urlneeded", "Answers that a person must visit a URL first", `{"type":"object","properties":{"url":{"type":"string"}}}`, urlNeeded),
		tool("meta", "Returns the _meta it was called with", `{"type":"object"}`, meta),
	}
}

func tool(name, description, schema string, handle Handler, more ...string) Tool {
	def := fmt.Appendf(nil, `{"name":%s,"description":%s,"inputSchema":%s`, jsonx.Quote(name), jsonx.Quote(description), schema)
	for _, m := range more {
		def = append(append(def, ','), m...)
	}
	return Tool{Def: append(def, '}'), Handle: handle}
}

func echo(_ context.Context, c *Call) ([]byte, error) {
	return fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}],"structuredContent":%s}`, jsonx.Quote(string(c.Args)), c.Args), nil
}

func add(_ context.Context, c *Call) ([]byte, error) {
	var in struct{ A, B float64 }
	if err := json.Unmarshal(c.Args, &in); err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	return fmt.Appendf(nil, `{"content":[{"type":"text","text":"%v"}],"structuredContent":{"sum":%v}}`, in.A+in.B, in.A+in.B), nil
}

func slow(ctx context.Context, c *Call) ([]byte, error) {
	ms, steps := c.number("ms", 100), max(c.number("steps", 1), 1)
	for i := range steps {
		if !pause(ctx, time.Duration(ms)*time.Millisecond/time.Duration(steps)) {
			return nil, context.Cause(ctx)
		}
		c.Progress(i+1, steps, fmt.Sprintf("step %d", i+1))
	}
	return TextResult("done"), nil
}

func fail(_ context.Context, c *Call) ([]byte, error) {
	return nil, errors.New(c.text("message", "it did not work"))
}

func rpcError(_ context.Context, c *Call) ([]byte, error) {
	return nil, mcp.Errorf(int64(c.number("code", mcp.CodeInternal)), "%s", c.text("message", "asked for"))
}

func logs(_ context.Context, c *Call) ([]byte, error) {
	for i := range c.number("count", 1) {
		c.Log("info", fmt.Sprintf("message %d", i+1))
	}
	return TextResult("logged"), nil
}

// pay has a side effect: exactly one entry per execution.
func pay(ctx context.Context, c *Call) ([]byte, error) {
	c.Note(EventExecuted, c.text("id", ""))
	if ms := c.number("ms", 0); ms > 0 && !pause(ctx, time.Duration(ms)*time.Millisecond) {
		return nil, context.Cause(ctx)
	}
	return TextResult("paid " + c.text("id", "")), nil
}

func crash(ctx context.Context, c *Call) ([]byte, error) {
	if c.text("when", "before") == "after" {
		c.Note(EventExecuted, c.text("id", ""))
	}
	c.Exit("crash tool")
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// ttl sends the number it was given as it stands, so that absurd ones arrive too.
func ttl(_ context.Context, c *Call) ([]byte, error) {
	return fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}],"ttlMs":%s,"cacheScope":%s}`,
		jsonx.Quote(time.Now().UTC().Format(time.RFC3339Nano)), c.text("ms", "60000"), jsonx.Quote(c.text("scope", "private"))), nil
}

func env(context.Context, *Call) ([]byte, error) {
	vars := map[string]string{}
	for _, kv := range os.Environ() {
		k, v, _ := strings.Cut(kv, "=")
		vars[k] = v
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	return structured(map[string]any{"env": vars, "cwd": dir, "args": os.Args})
}

// urlNeeded is the way of revision 2025-11-25 to send a person to a URL.
func urlNeeded(_ context.Context, c *Call) ([]byte, error) {
	err := mcp.Errorf(mcp.CodeURLElicitation, "a person must visit a URL first")
	err.Data = fmt.Appendf(nil, `{"elicitations":[{"mode":"url","elicitationId":"el-1","url":%s,"message":"Please sign in"}]}`, jsonx.Quote(c.text("url", "https://example.com/sign-in")))
	return nil, err
}

func region(_ context.Context, c *Call) ([]byte, error) {
	got := map[string]string{}
	for name, v := range interesting(c.Header) {
		if strings.HasPrefix(name, wire.HeaderParamPrefix) {
			got[name] = v
		}
	}
	return structured(got)
}

// structured returns v as text and as structured content.
func structured(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}],"structuredContent":%s}`, jsonx.Quote(string(text)), text), nil
}

func big(_ context.Context, c *Call) ([]byte, error) {
	return TextResult(string(bytes.Repeat([]byte("b"), max(c.number("bytes", 1<<20), 0)))), nil
}

func image(context.Context, *Call) ([]byte, error) {
	// A PNG of one transparent pixel.
	const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	return []byte(`{"content":[{"type":"text","text":"a pixel"},{"type":"image","mimeType":"image/png","data":"` + pixel + `"}]}`), nil
}

func mutate(_ context.Context, c *Call) ([]byte, error) {
	c.s.change()
	return TextResult("changed"), nil
}

func meta(_ context.Context, c *Call) ([]byte, error) {
	m := c.Meta
	if m == nil {
		m = []byte("{}")
	}
	return fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}],"structuredContent":%s}`, jsonx.Quote(string(m)), m), nil
}

func (c *Call) number(key string, def int) int {
	raw, ok := jsonx.Get(c.Args, key)
	var f float64
	if !ok || json.Unmarshal(raw, &f) != nil {
		return def
	}
	return int(f)
}

func (c *Call) text(key, def string) string {
	raw, ok := jsonx.Get(c.Args, key)
	if s, isText := jsonx.Text(raw); ok && isText {
		return s
	}
	if ok {
		return string(raw)
	}
	return def
}
