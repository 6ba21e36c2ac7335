package surface

import (
	"cmp"
	"context"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
)

// endpoint is what the views on many servers have in common.
type endpoint struct {
	s       *Surface
	profile string
	hints   *hints
}

// agent fills in the defaults, and who the agent is for the gate.
func (e *endpoint) agent(a Agent) Agent {
	a.Principal = cmp.Or(a.Principal, local)
	a.at = e
	a.who = policy.Caller{Principal: a.Principal, Credential: a.Credential, Scope: e.s.scope(a, e.profile), Session: a.Session}
	return a
}

// now is the agent under the profiles of the moment, for what lasts.
func (a *Agent) now() Agent { return a.at.agent(*a) }

// Close ends what was held for the agent's lane.
func (e *endpoint) Close(a Agent) { e.s.closeLane(e.agent(a)) }

// Notify passes a notification on to the servers whose connection is the agent's
// own; on shared ones it would speak for others.
func (e *endpoint) Notify(ctx context.Context, a Agent, method string, params []byte) error {
	a = e.agent(a)
	l := e.s.lanes.open(a)
	if l == nil || method != mcp.MethodNotifyRoots {
		return nil
	}
	var err error
	for _, k := range l.olderOnes() {
		if e := e.s.gate.Notify(ctx, a.who, k, method, params); e != nil {
			err = e // one server that is down must not keep the others from hearing
		}
	}
	return err
}

// serverInfo is what usher says about itself.
func (e *endpoint) serverInfo() []byte {
	out := jsonx.AppendText([]byte(`{"name":`), e.s.opt.Name)
	out = jsonx.AppendText(append(out, `,"version":`...), e.s.opt.Version)
	return append(out, '}')
}

// lookup returns the snapshot in which a name is found, up to date where an older
// one does not have it.
func (e *endpoint) lookup(ctx context.Context, a Agent, find func(*snapshot) bool) *snapshot {
	snap := e.s.recent(ctx, a)
	if find(snap) {
		return snap
	}
	snap = e.s.snapshot(ctx, a)
	if find(snap) {
		return snap
	}
	e.s.learn(ctx, snap.sources, mcp.MethodToolsList)
	return e.s.snapshot(ctx, a)
}
