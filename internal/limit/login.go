package limit

import "slices"

// Limits on logins and authorization servers.
const (
	// LoginState is the length of a state; ours are shorter.
	LoginState = 512
	// LoginCode is the length of a code and of other parameters of an answer.
	LoginCode = 8 << 10
	// PendingPerAccount is how many logins of one account wait for a person.
	PendingPerAccount = 4
	// PendingPerPrincipal is how many logins of one principal wait for a person.
	PendingPerPrincipal = 500
	// PendingTotal is how many logins wait for a person in all.
	PendingTotal = 2_000
	// PendingBytes is the size of the record of one pending login.
	PendingBytes = 64 << 10
	// LoginScopes is how many scopes a login asks for.
	LoginScopes = 1_000
	// LoginScopeBytes is the length of all scopes of a login.
	LoginScopeBytes = 16 << 10
	// LoginDocument is the size of metadata and of every answer of an authorization server.
	LoginDocument = 256 << 10
	// IssuedTokenBytes is the size of the tokens, or the client, that an authorization server issues.
	IssuedTokenBytes = 32 << 10
	// Registrations is how many clients are registered.
	Registrations = 500
	// StepUps is of how many operations it is remembered that they asked for more permission.
	StepUps = 100
	// LoginOutcomes is how many ends of logins a process remembers.
	LoginOutcomes = 4_096
	// LoginFailures is how many failed logins of a principal a process remembers.
	LoginFailures = 50
	// LoginFailuresTotal is how many failed logins of all principals a process remembers.
	LoginFailuresTotal = 5_000
	// LoginRounds is how many principals log in to all servers at once.
	LoginRounds = 64
	// WatchedLeases is of how many leases of other processes a process remembers since when it saw them.
	WatchedLeases = 4_096
	// CallbackConnections is how many connections the callback listener has open.
	CallbackConnections = 256
	// CallbackRequests is how many answers of login pages are taken in at once.
	CallbackRequests = 64
	// LoginInputLine is the length of one line of input that drives logins.
	LoginInputLine = 16 << 10
	// LoginInputAnswers is how many lines of one input are worked on at once.
	LoginInputAnswers = 16
	// LoginInputBytes is the size of the input that one request carries.
	LoginInputBytes = 1 << 20
	// ForwardMessageBytes is the size of one message of callback forwarding.
	ForwardMessageBytes = 256 << 10
	// ForwardBytes is what one side may send in all.
	ForwardBytes = 16 << 20
	// ForwardMessages is how many messages one side may send.
	ForwardMessages = 50_000
	// ForwardAccounts is how many accounts the remote side may tell of.
	ForwardAccounts = 1_000
	// ForwardStates is how many logins the remote side may begin.
	ForwardStates = 4_000
	// ForwardNoise is how many other lines of the remote side are shown.
	ForwardNoise = 200
	// ForwardWaiting is how many requests of browsers wait for the verdict on one login.
	ForwardWaiting = 8
	// ForwardAnswers is how many answers are exchanged for tokens at once.
	ForwardAnswers = 16
)

func loginRows() []Row { return slices.Concat(pendingRows(), providerRows(), forwardRows()) }

func pendingRows() []Row {
	return []Row{
		{
			Name: "LoginState", Who: "browser", What: "length of `state` and `error` in the answer of a login page", Value: LoginState, Unit: "bytes",
			Then: "the answer is refused", Test: "auth.TestCallbackTooLong",
		},
		{
			Name: "LoginCode", Who: "browser", What: "length of `code`, `iss` and `error_description` in the answer of a login page", Value: LoginCode, Unit: "bytes",
			Then: "the answer is refused", Test: "auth.TestCallbackTooLong",
		},
		{
			Name: "PendingPerAccount", Who: "client", What: "pending logins of one account", Value: PendingPerAccount,
			Then: "the oldest is dropped", Test: "auth.TestPendingIsBounded",
		},
		{
			Name: "PendingPerPrincipal", Who: "client", What: "pending logins of one principal", Value: PendingPerPrincipal,
			Then: "the oldest is dropped", Test: "auth.TestPendingIsBounded",
		},
		{
			Name: "PendingTotal", Who: "client", What: "pending logins of all principals", Value: PendingTotal,
			Then: "a new login is refused", Test: "auth.TestPendingTotal",
		},
		{
			Name: "PendingBytes", Who: "authorization server", What: "size of the record of a pending login", Value: PendingBytes, Unit: "bytes",
			Then: "the login is refused", Test: "auth.TestLoginIsTooLarge",
		},
		{
			Name: "LoginScopes", Who: "authorization server", What: "scopes of one login", Value: LoginScopes,
			Then: "the login is refused", Test: "auth.TestTooManyScopes",
		},
		{
			Name: "LoginScopeBytes", Who: "authorization server", What: "length of all scopes of one login", Value: LoginScopeBytes, Unit: "bytes",
			Then: "the login is refused", Test: "auth.TestTooManyScopes",
		},
		{
			Name: "LoginDocument", Who: "authorization server", What: "size of a metadata document, and of an answer of a registration, device or token endpoint", Value: LoginDocument, Unit: "bytes",
			Then: "it is refused", Test: "auth.TestDocumentTooLarge",
		},
		{
			Name: "IssuedTokenBytes", Who: "authorization server", What: "size of issued tokens, and of a registered client", Value: IssuedTokenBytes, Unit: "bytes",
			Then: "they are refused; other members of the answer are not kept", Test: "auth/oauth.TestTokensTooLarge",
		},
		{
			Name: "Registrations", Who: "authorization server", What: "client registrations", Value: Registrations,
			Then: "the oldest that no login uses is dropped, else the new one is refused", Test: "auth.TestRegistrationsAreBounded",
		},
	}
}

func providerRows() []Row {
	return []Row{
		{
			Name: "StepUps", Who: "client", What: "operations of an account that asked for more permission", Value: StepUps,
			Then: "the oldest is forgotten", Test: "auth.TestStepUpsAreBounded",
		},
		{
			Name: "WatchedLeases", Who: "client", What: "leases of other processes that a process waits for", Value: WatchedLeases,
			Then: "one is forgotten, and waited for from the start", Test: "vault.TestSightingsAreBounded",
		},
		{
			Name: "LoginOutcomes", Who: "client", What: "logins whose end a process remembers", Value: LoginOutcomes,
			Then: "the oldest is forgotten", Test: "auth.TestOutcomesAreBounded",
		},
		{
			Name: "LoginFailures", Who: "client", What: "failed logins of one principal that its agents see", Value: LoginFailures,
			Then: "the oldest is forgotten", Test: "internal/logins.TestLoginFailuresAreBounded",
		},
		{
			Name: "LoginFailuresTotal", Who: "client", What: "failed logins of all principals that agents see", Value: LoginFailuresTotal,
			Then: "the oldest is forgotten", Test: "internal/logins.TestLoginFailuresAreBounded",
		},
		{
			Name: "LoginRounds", Who: "client", What: "principals whose agents log in to all servers at once", Value: LoginRounds,
			Then: "a new one is refused", Test: "internal/logins.TestLoginRoundsAreBounded",
		},
		{
			Name: "CallbackConnections", Who: "browser", What: "connections to the callback listener", Value: CallbackConnections,
			Then: "the oldest without a whole request is closed", Test: "auth.TestCallbackConnections",
		},
		{
			Name: "CallbackRequests", Who: "browser", What: "answers of login pages that are taken in at once", Value: CallbackRequests,
			Then: "HTTP 503", Test: "auth.TestCallbackRequests",
		},
		{
			Name: "LoginInputLine", Who: "client", What: "length of one line of input to `login --json`", Value: LoginInputLine, Unit: "bytes",
			Then: "the line is rejected", Test: "auth/bulk.TestInputLineTooLong",
		},
		{
			Name: "LoginInputAnswers", Who: "client", What: "lines of one input to `login --json` that are worked on at once", Value: LoginInputAnswers,
			Then: "the next line waits", Test: "auth/bulk.TestInputIsBounded",
		},
		{
			Name: "LoginInputBytes", Who: "client", What: "size of the answers to logins that one HTTP request carries", Value: LoginInputBytes, Unit: "bytes",
			Then: "the rest is not read", Test: "auth/bulk.TestInputOverHTTP",
		},
	}
}

func forwardRows() []Row {
	return []Row{
		{
			Name: "ForwardMessageBytes", Who: "server", What: "size of one message of callback forwarding (`login --courier`)", Value: ForwardMessageBytes, Unit: "bytes",
			Then: "forwarding ends with an error", Test: "auth/forward.TestHostileRemote",
		},
		{
			Name: "ForwardBytes", Who: "server", What: "everything one side of callback forwarding sends", Value: ForwardBytes, Unit: "bytes",
			Then: "forwarding ends with an error", Test: "auth/forward.TestHostileRemote",
		},
		{
			Name: "ForwardMessages", Who: "server", What: "messages of one side of callback forwarding", Value: ForwardMessages,
			Then: "forwarding ends with an error", Test: "auth/forward.TestHostileRemote",
		},
		{
			Name: "ForwardAccounts", Who: "server", What: "accounts that the remote side of callback forwarding tells of", Value: ForwardAccounts,
			Then: "forwarding ends with an error", Test: "auth/forward.TestHostileRemote",
		},
		{
			Name: "ForwardStates", Who: "server", What: "logins that the remote side of callback forwarding begins", Value: ForwardStates,
			Then: "forwarding ends with an error", Test: "auth/forward.TestHostileRemote",
		},
		{
			Name: "ForwardNoise", Who: "server", What: "other lines of the remote side that are shown", Value: ForwardNoise,
			Then: "further lines are not shown", Test: "auth/forward.TestHostileRemote",
		},
		{
			Name: "ForwardWaiting", Who: "browser", What: "requests that wait for the verdict on one forwarded login", Value: ForwardWaiting,
			Then: "the browser gets a page that asks to try again", Test: "auth/forward.TestWaitingBrowsers",
		},
		{
			Name: "ForwardAnswers", Who: "browser", What: "forwarded answers that are exchanged for tokens at once", Value: ForwardAnswers,
			Then: "further answers wait, unread", Test: "auth/forward.TestAnswersAreBounded",
		},
	}
}
