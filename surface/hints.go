package surface

import "fmt"

// hints say what can be done next on a view: only with actions and tools that the
// view has. The texts with %s take the name of a server.
type hints struct {
	names    string // how an agent finds the names of all servers
	status   string // how an agent sees how a login stands
	login    string // how an agent starts a login
	complete string // how an agent finishes a paste login
	paste    string // how a person does
}

var (
	metaHints = hints{
		names: "Use action list_servers for all names.", status: "Use action status to see the outcome.",
		login:    "use action login with server %q",
		complete: "use action complete_login with server %q and this address as redirect_url",
		paste:    "If the browser ends on a page that cannot be loaded, copy its address into the chat.",
	}
	directHints = hints{
		names: "Use the tool `status` for all names.", status: "Use the tool `status` to see the outcome.",
		login:    "use the tool `login` with server %q",
		complete: "use the tool `login` with server %q and this address as redirect_url",
		paste:    "If the browser ends on a page that cannot be loaded, copy its address into the chat.",
	}
	// A single server has its own tools only.
	singleHints = hints{
		complete: "have the person run `usher login %s --paste`, which asks for the address",
		paste:    "If the browser ends on a page that cannot be loaded, run usher login with --paste on the machine of usher; it asks for the address.",
	}
)

// toComplete says how a paste login to a server is finished.
func (h *hints) toComplete(server string) string { return fmt.Sprintf(h.complete, server) }
