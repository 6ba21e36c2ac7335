package limit

// Limits on accounts, and what is kept for each of them.
const (
	// ScopedLists is for how many scopes the tools of one account are kept filtered.
	ScopedLists = 64
	// ToolPages is how many filtered pages of tools are kept for all accounts.
	ToolPages = 256
	// AccountLists is of how many principals the list of accounts is kept.
	AccountLists = 4096
)

func accountRows() []Row {
	return []Row{
		{Name: "ScopedLists", Who: "client", What: "filtered lists of tools kept for one account", Value: ScopedLists, Then: "all are dropped and filtered again when asked for", Test: "policy.TestScopedListsAreBounded"},
		{Name: "ToolPages", Who: "client", What: "filtered pages of tools kept for all accounts", Value: ToolPages, Then: "all are dropped and filtered again when asked for", Test: "policy.TestToolPagesAreBounded"},
		{Name: "AccountLists", Who: "client", What: "principals whose list of accounts is kept", Value: AccountLists, Then: "all are dropped and read again when asked for", Test: "usher.TestAccountListsAreBounded"},
	}
}
