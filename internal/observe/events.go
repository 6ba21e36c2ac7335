package observe

import (
	"errors"
	"time"

	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/policy/pins"
)

// PublishCall publishes a call that ended, and the budget that refused it.
func PublishCall(bus *event.Bus[event.Event], f policy.Finished) {
	done := f.Event()
	bus.Publish(done)
	var spent *policy.BudgetError
	if f.Outcome == policy.OutcomeBudget && errors.As(f.Err, &spent) {
		bus.Publish(event.BudgetSpent{
			Header: done.Header, Scope: spent.Scope, Shared: spent.Scope == "" && spent.Server == "", Limit: spent.Limit, Refill: spent.Refill,
		})
	}
}

// PublishPin publishes a tool that is new or differs from its pin.
func PublishPin(bus *event.Bus[event.Event], k host.Key, n pins.Note) {
	head := event.Header{At: time.Now(), Server: k.Server, Account: k.Account}
	if k.Principal != host.Local {
		head.Principal = k.Principal
	}
	bus.Publish(event.PinChanged{Header: head, Tool: n.Tool, Change: n.Kind, From: n.From})
}
