package surface

import (
	"context"
	"time"

	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
)

// Agent is who asks, as far as a view has to know.
type Agent struct {
	// Principal is whose accounts, pins and private answers are used. Default
	// "local".
	Principal string
	// Credential names what the client authenticated with, for audit records: the id
	// of a token, never the token. Empty: nothing.
	Credential string
	// Expires is when that credential ends. Zero: never.
	Expires time.Time
	// Lane names the agent's session. A server of the legacy protocol that has to know
	// its client gets one connection per lane; all others share a connection. Empty:
	// the agent has no session, and usher keeps no state about it.
	Lane string
	// Version is the protocol revision that the agent speaks. It decides on the
	// form of what a view makes itself, never on what a server said.
	Version string
	// Capabilities and ClientInfo are the raw objects of this request or session;
	// nil stands for {}.
	Capabilities []byte
	ClientInfo   []byte
	// Servers and Tools are the scope of a minted token: globs over "server" or
	// "server@account", and over "server/tool" or, without a slash, over the name
	// of a tool of any server. What does not match is not there for this agent.
	// Empty: all.
	Servers, Tools []string
	// Session counts the calls of the agent's session or connection. Nil: it has none.
	Session *policy.Session
	// Ask answers server requests that a server of the legacy protocol sends on the
	// lane's connection outside any request of the agent. Nil: they are rejected.
	Ask mcp.Responder

	// Filled in by endpoint.agent.
	at  *endpoint
	who policy.Caller
}

// Info is what an endpoint says about itself, for initialize and server/discover.
type Info struct {
	Server       []byte // raw serverInfo object, never nil
	Capabilities []byte // raw object, never nil
	Instructions string // empty: none
	// Version is the revision that a single server behind the endpoint speaks;
	// empty where there are many, or it is not known yet.
	Version string
	// TTL is how long this may be kept, and Public whether for everybody.
	TTL    time.Duration
	Public bool
}

// View is the content of one endpoint: all servers through one tool, all of them
// directly, a profile, or one server untouched. All methods may be used
// concurrently.
type View interface {
	// Info says what the endpoint is. It is answered from what is known; a single
	// server that was never seen is asked, and when that fails (it may want a login
	// first) a general description is returned without an error.
	Info(ctx context.Context, a Agent) (Info, error)

	// Do answers any request but initialize, server/discover and
	// subscriptions/listen. The result is raw and may be shared: do not change it.
	// A *mcp.Error, found with errors.As, is to be sent as it is; other errors
	// are told apart with [Surface.Explain].
	Do(ctx context.Context, a Agent, r mcp.Request) ([]byte, error)

	// Listen hands changes of what this view shows to on, with the view's own names
	// and URIs, until ctx ends, and returns ctx's error. With a lane it also hands
	// over what the servers of that lane say outside any request, such as log
	// messages, and updates of resources that Do subscribed to. Changes of lists
	// are gathered for a moment and told once. on must not block.
	Listen(ctx context.Context, a Agent, want Subscription, on func(mcp.Message)) error

	// Notify passes a notification of the agent on to the servers of its lane, such
	// as roots/list_changed. Without a lane it does nothing.
	Notify(ctx context.Context, a Agent, method string, params []byte) error

	// Close ends what was held for the agent's lane: connections, subscriptions.
	Close(a Agent)
}
