package surface

import (
	"context"
	"errors"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/surface/internal/result"
)

// forward sends a request to one server, through the gate, and returns what the
// server says. For tools/call tool is the name in params.
func (s *Surface) forward(ctx context.Context, a Agent, k policy.Key, tool string, r mcp.Request) ([]byte, error) {
	result, _, err := s.forwardOn(ctx, a, k, tool, r)
	return result, err
}

// forwardOn also says over which connection it went.
func (s *Surface) forwardOn(ctx context.Context, a Agent, k policy.Key, tool string, r mcp.Request) ([]byte, policy.Key, error) {
	rt, err := s.route(ctx, a, k, &r)
	if err != nil {
		return nil, k, s.asAnswer(err)
	}
	defer rt.done()
	defer s.accompany(a, rt, &r)()
	r.Params = s.params(a, rt.version, r.Params)
	res, err := s.pass(ctx, a, rt.key, tool, &r)
	if err != nil {
		return nil, k, s.asAnswer(err)
	}
	if !mcp.Stateless(a.Version) {
		return res.Raw, rt.key, nil
	}
	if rt.version == "" {
		if version, err := s.gate.Version(ctx, a.who, rt.key); err == nil {
			rt.version = version
		}
	}
	if mcp.Stateless(rt.version) {
		return res.Raw, rt.key, nil
	}
	return result.Complete(res.Raw, r.Method), rt.key, nil
}

// pass hands the request to the gate.
func (s *Surface) pass(ctx context.Context, a Agent, k policy.Key, tool string, r *mcp.Request) (policy.Result, error) {
	if r.Method == mcp.MethodToolsCall {
		return s.gate.Call(ctx, policy.Call{Request: policy.Request{Request: *r}, Caller: a.who, Key: k, Tool: tool})
	}
	return s.gate.Do(ctx, a.who, k, policy.Request{Request: *r})
}

// params says to a modern server in `_meta` what an older agent said when its
// session began.
func (s *Surface) params(a Agent, version string, params []byte) []byte {
	if mcp.Stateless(a.Version) || !mcp.Stateless(version) {
		return params
	}
	var edits []jsonx.Edit
	if a.Capabilities != nil {
		edits = append(edits, jsonx.Edit{Key: mcp.MetaClientCaps, Value: a.Capabilities})
	}
	if a.ClientInfo != nil {
		edits = append(edits, jsonx.Edit{Key: mcp.MetaClientInfo, Value: a.ClientInfo})
	}
	if l := s.lanes.open(a); l != nil {
		edits = append(edits, jsonx.Edit{Key: mcp.MetaLogLevel, Value: l.wantedLevel()})
	}
	if len(edits) == 0 {
		return params
	}
	return wire.EditMeta(params, edits...)
}

// asAnswer turns the errors that the protocol has an answer for into that answer.
func (s *Surface) asAnswer(err error) error {
	var answer *mcp.Error
	if errors.As(err, &answer) {
		return err
	}
	switch p := s.Explain(err); p.Kind {
	case KindUnknownTool:
		return mcp.Errorf(mcp.CodeInvalidParams, "unknown tool: %s", p.Text)
	case KindUnsupported:
		return mcp.Errorf(mcp.CodeMethodNotFound, "%s", p.Text)
	}
	return err
}
