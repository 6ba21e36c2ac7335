package surface

import (
	"context"
	"fmt"

	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/policy"
)

// Surface makes the views on all servers behind a gate.
type Surface struct {
	gate *policy.Gate
	opt  Options
}

// New returns the surface of what gate lets through. Close it.
func New(gate *policy.Gate, opt *Options) *Surface {
	s := &Surface{gate: gate}
	if opt != nil {
		s.opt = *opt
	}
	return s
}

// Meta is the view with the one tool that stands for all servers.
func (s *Surface) Meta() View { return nil }

// Direct is the view with the tools of all servers.
func (s *Surface) Direct() View { return nil }

// Server is the view on one server ("name" or "name@account"), untouched. The error
// is ErrUnknownView.
func (s *Surface) Server(name string) (View, error) {
	return nil, fmt.Errorf("%w: no server is named %q", ErrUnknownView, name)
}

// Profile is the direct view narrowed to a profile. The error is ErrUnknownView.
func (s *Surface) Profile(name string) (View, error) {
	return nil, fmt.Errorf("%w: no profile is named %q", ErrUnknownView, name)
}

// Auto is the meta or the direct view: the one that New decided on.
func (s *Surface) Auto() (View, Explanation) { return nil, Explanation{} }

// Explain says what an error of a view means.
func (s *Surface) Explain(err error) Problem { return Problem{Text: err.Error()} }

// Notified takes in what a server says outside any request. It does not block.
func (s *Surface) Notified(k policy.Key, m wire.Message) {}

// LaneCapabilities are the client capabilities to declare on the connection of a
// lane, nil for those that belong to no lane.
func (s *Surface) LaneCapabilities(k policy.Key) []byte { return nil }

// LaneAsk answers a question of a server on the connection of a lane that belongs
// to no request.
func (s *Surface) LaneAsk(ctx context.Context, k policy.Key, method string, params []byte) ([]byte, *wire.Error) {
	return nil, wire.Errorf(wire.CodeMethodNotFound, "%s is not supported by this client", method)
}

// Close ends everything that runs for the surface.
func (s *Surface) Close() {}
