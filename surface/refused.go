package surface

import (
	"context"

	"github.com/usher-mcp/usher/mcp"
)

// refused stands for a server that the rules deny: every request gets the refusal.
type refused struct {
	endpoint
	err error
}

// Info implements [View].
func (v *refused) Info(context.Context, Agent) (Info, error) { return Info{}, v.err }

// Do implements [View].
func (v *refused) Do(context.Context, Agent, mcp.Request) ([]byte, error) { return nil, v.err }

// Listen implements [View].
func (v *refused) Listen(context.Context, Agent, Subscription, func(mcp.Message)) error {
	return v.err
}
