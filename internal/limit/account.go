package limit

import "time"

// Limits on accounts, and what is kept for each of them.
const (
	// ScopedLists is for how many scopes the tools of one account are kept filtered.
	ScopedLists = 64
	// ToolPages is how many filtered pages of tools are kept for all accounts.
	ToolPages = 256
	// AccountLists is of how many principals the list of accounts is kept.
	AccountLists = 4096
	// UnitsPerServer is how many connections, open or not, are supervised for one
	// server: one for each principal, account and session.
	UnitsPerServer = 4096
	// UnitIdle is how long a connection that was closed stays supervised.
	UnitIdle = 30 * time.Minute
	// UnitSweep is how often such connections are looked for.
	UnitSweep = time.Minute
	// RememberedVersions is how many tokens, approvals and pins have their newest
	// version remembered in a process.
	RememberedVersions = 16384
)

func accountRows() []Row {
	return []Row{
		{Name: "ScopedLists", Who: "client", What: "filtered lists of tools kept for one account", Value: ScopedLists, Then: "all are dropped and filtered again when asked for", Test: "policy.TestScopedListsAreBounded"},
		{Name: "ToolPages", Who: "client", What: "filtered pages of tools kept for all accounts", Value: ToolPages, Then: "all are dropped and filtered again when asked for", Test: "policy.TestToolPagesAreBounded"},
		{Name: "AccountLists", Who: "client", What: "principals whose list of accounts is kept", Value: AccountLists, Then: "all are dropped and read again when asked for", Test: "internal/logins.TestAccountListsAreBounded"},
		{Name: "UnitsPerServer", Who: "client", What: "supervised connections of one server, open or closed", Value: UnitsPerServer, Then: "the longest unused ones are forgotten; if all are open, the request fails", Test: "host.TestUnitsAreBounded"},
		{Name: "UnitIdle", Who: "client", What: "time that a closed connection of a named account or another principal stays supervised", Value: UnitIdle, Then: "it is forgotten", Test: "host.TestIdleUnitsAreForgotten"},
		{Name: "UnitSweep", Who: "client", What: "time between two looks for such connections", Value: UnitSweep, Then: "the next request looks", Test: "host.TestIdleUnitsAreForgotten"},
		{
			Name: "RememberedVersions", Who: "client", What: "tokens, approvals and pins whose newest version a process remembers",
			Value: RememberedVersions, Then: "one of them is forgotten; its older versions are noticed again after the next read",
			Test: "vault/keys.TestRememberedVersionsAreBounded",
		},
	}
}
