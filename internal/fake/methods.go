package fake

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
)

// dispatch makes the result of a request.
func (s *Server) dispatch(ctx context.Context, ex *exchange) ([]byte, error) {
	if !ex.modern {
		if result, ok := s.legacyOnly(ex); ok {
			return result, nil
		}
	}
	switch method := ex.msg.Method; {
	case method == mcp.MethodDiscover && ex.modern:
		return s.discover(ex), nil
	case method == mcp.MethodListen && ex.modern:
		return s.listen(ctx, ex)
	case method == mcp.MethodToolsList:
		return s.listTools(ex)
	case method == mcp.MethodToolsCall:
		return s.call(ctx, ex)
	case method == mcp.MethodPromptsList:
		return s.page(ex, "prompts", promptDefs(s.opts.Prompts))
	case method == mcp.MethodPromptsGet:
		return s.getPrompt(ex)
	case method == mcp.MethodResourcesList:
		return s.page(ex, "resources", resourceDefs(s.opts.Resources))
	case method == mcp.MethodTemplatesList:
		return s.page(ex, "resourceTemplates", s.templateDefs())
	case method == mcp.MethodResourcesRead:
		return s.readResource(ex)
	case method == mcp.MethodComplete:
		return []byte(`{"completion":{"values":["alpha","beta"],"total":2,"hasMore":false}}`), nil
	}
	return nil, mcp.Errorf(mcp.CodeMethodNotFound, "method %s not found", ex.msg.Method)
}

// legacyOnly answers the methods that the modern era removed.
func (s *Server) legacyOnly(ex *exchange) ([]byte, bool) {
	switch ex.msg.Method {
	case mcp.MethodInitialize:
		return s.initialize(ex), true
	case mcp.MethodPing, mcp.MethodSetLevel:
		return []byte(`{}`), true
	case mcp.MethodSubscribe, mcp.MethodUnsubscribe:
		ex.sess.mu.Lock()
		defer ex.sess.mu.Unlock()
		if ex.sess.subscribed == nil {
			ex.sess.subscribed = map[string]bool{}
		}
		ex.sess.subscribed[ex.p.URI] = ex.msg.Method == mcp.MethodSubscribe
		return []byte(`{}`), true
	}
	return nil, false
}

const capabilities = `{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"completions":{},"logging":{}}`

func (s *Server) serverInfo() []byte {
	return fmt.Appendf(nil, `{"name":%s,"version":"1.0.0"}`, jsonx.Quote(s.opts.Name))
}

// negotiate settles version and capabilities of a legacy session.
func (s *Server) negotiate(ex *exchange) {
	version := jsonx.GetText(ex.msg.Params, "protocolVersion")
	if !slices.Contains(s.legacyVersions(), version) {
		version = s.newestLegacy()
	}
	if v, ok := s.sw.fire("badversion", ex.msg.Method); ok {
		version = v.text("1999-01-01")
	}
	caps, _ := jsonx.Get(ex.msg.Params, "capabilities")
	ex.sess.mu.Lock()
	ex.sess.version, ex.sess.caps, ex.sess.ready = version, caps, true
	ex.sess.mu.Unlock()
}

func (s *Server) initialize(ex *exchange) []byte {
	result := fmt.Appendf(nil, `{"protocolVersion":%s,"capabilities":%s,"serverInfo":%s}`, jsonx.Quote(ex.version), capabilities, s.serverInfo())
	return s.withInstructions(result)
}

func (s *Server) withInstructions(result []byte) []byte {
	if s.opts.Instructions == "" {
		return result
	}
	return jsonx.Set(result, "instructions", jsonx.Quote(s.opts.Instructions))
}

func (s *Server) discover(ex *exchange) []byte {
	versions := s.opts.Versions
	if v, ok := s.sw.fire("badversion", ex.msg.Method); ok {
		versions = []string{v.text("1999-01-01")}
	}
	result := fmt.Appendf(nil, `{"supportedVersions":%s,"capabilities":%s}`, quoteAll(versions), capabilities)
	return s.fresh(ex, s.withInstructions(result))
}

// fresh adds the cache hints that the modern era requires on some results.
func (s *Server) fresh(ex *exchange, result []byte) []byte {
	if !ex.modern {
		return result
	}
	scope := s.opts.CacheScope
	if scope == "" {
		scope = "private"
	}
	return jsonx.Apply(result,
		jsonx.Edit{Key: "ttlMs", Value: fmt.Appendf(nil, "%d", s.opts.ListTTL)},
		jsonx.Edit{Key: "cacheScope", Value: jsonx.Quote(scope)})
}

func (s *Server) getPrompt(ex *exchange) ([]byte, error) {
	for _, p := range s.opts.Prompts {
		if jsonx.GetText(p.Def, "name") == ex.p.Name {
			return p.Result, nil
		}
	}
	return nil, mcp.Errorf(mcp.CodeInvalidParams, "unknown prompt %q", ex.p.Name)
}

func (s *Server) readResource(ex *exchange) ([]byte, error) {
	for _, r := range s.opts.Resources {
		if jsonx.GetText(r.Def, "uri") == ex.p.URI {
			return s.fresh(ex, r.Result), nil
		}
	}
	code := int64(mcp.CodeResourceNotFound)
	if ex.modern {
		code = mcp.CodeInvalidParams
	}
	err := mcp.Errorf(code, "resource not found")
	err.Data, _ = json.Marshal(map[string]string{"uri": ex.p.URI})
	return nil, err
}

func promptDefs(list []Prompt) (out [][]byte) {
	for _, p := range list {
		out = append(out, p.Def)
	}
	return out
}

func resourceDefs(list []Resource) (out [][]byte) {
	for _, r := range list {
		out = append(out, r.Def)
	}
	return out
}

func defaultPrompts() []Prompt {
	return []Prompt{{
		Def:    []byte(`{"name":"greet","description":"Greets someone","arguments":[{"name":"who","required":true}]}`),
		Result: []byte(`{"description":"A greeting","messages":[{"role":"user","content":{"type":"text","text":"Say hello."}}]}`),
	}}
}

func defaultResources() []Resource {
	return []Resource{{
		Def:    []byte(`{"uri":"fake://readme","name":"readme","mimeType":"text/plain"}`),
		Result: []byte(`{"contents":[{"uri":"fake://readme","mimeType":"text/plain","text":"Read me."}]}`),
	}}
}
