package fake

import (
	"context"
	"fmt"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
)

// ask puts a form, or a URL when it was given one, before the person.
func ask(ctx context.Context, c *Call) ([]byte, error) {
	message := jsonx.Quote(c.text("message", "What is your name?"))
	params := fmt.Appendf(nil, `{"mode":"form","message":%s,"requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}`, message)
	if url := c.text("url", ""); url != "" {
		params = fmt.Appendf(nil, `{"mode":"url","message":%s,"url":%s,"elicitationId":"el-1"}`, message, jsonx.Quote(url))
	} else if !c.Modern && c.Version < mcp.V20251125 {
		params = jsonx.Delete(params, "mode")
	}
	return c.question(ctx, "answer", mcp.MethodElicit, params)
}

func sample(ctx context.Context, c *Call) ([]byte, error) {
	params := fmt.Appendf(nil, `{"messages":[{"role":"user","content":{"type":"text","text":%s}}],"maxTokens":100}`, jsonx.Quote(c.text("prompt", "Say something.")))
	return c.question(ctx, "sample", mcp.MethodSample, params)
}

func roots(ctx context.Context, c *Call) ([]byte, error) {
	return c.question(ctx, "roots", mcp.MethodRoots, []byte(`{}`))
}

// question asks and returns what came back, as text and as it stands.
func (c *Call) question(ctx context.Context, key, method string, params []byte) ([]byte, error) {
	answer, err := c.Ask(ctx, key, method, params)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}],"structuredContent":%s}`, jsonx.Quote(string(answer)), answer), nil
}
