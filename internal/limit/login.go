package limit

// Limits on logins and authorization servers.
const (
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

func loginRows() []Row {
	return []Row{
		{
			Name: "ForwardMessageBytes", Who: "server", What: "size of one message of callback forwarding (`login --courier`)", Value: ForwardMessageBytes, Unit: "bytes",
			Then: "forwarding ends with an error", Test: "auth/courier.TestHostileRemote",
		},
		{
			Name: "ForwardBytes", Who: "server", What: "everything one side of callback forwarding sends", Value: ForwardBytes, Unit: "bytes",
			Then: "forwarding ends with an error", Test: "auth/courier.TestHostileRemote",
		},
		{
			Name: "ForwardMessages", Who: "server", What: "messages of one side of callback forwarding", Value: ForwardMessages,
			Then: "forwarding ends with an error", Test: "auth/courier.TestHostileRemote",
		},
		{
			Name: "ForwardAccounts", Who: "server", What: "accounts that the remote side of callback forwarding tells of", Value: ForwardAccounts,
			Then: "forwarding ends with an error", Test: "auth/courier.TestHostileRemote",
		},
		{
			Name: "ForwardStates", Who: "server", What: "logins that the remote side of callback forwarding begins", Value: ForwardStates,
			Then: "forwarding ends with an error", Test: "auth/courier.TestHostileRemote",
		},
		{
			Name: "ForwardNoise", Who: "server", What: "other lines of the remote side that are shown", Value: ForwardNoise,
			Then: "further lines are not shown", Test: "auth/courier.TestHostileRemote",
		},
		{
			Name: "ForwardWaiting", Who: "browser", What: "requests that wait for the verdict on one forwarded login", Value: ForwardWaiting,
			Then: "the browser gets a page that asks to try again", Test: "auth/courier.TestWaitingBrowsers",
		},
		{
			Name: "ForwardAnswers", Who: "browser", What: "forwarded answers that are exchanged for tokens at once", Value: ForwardAnswers,
			Then: "further answers wait, unread", Test: "auth/courier.TestAnswersAreBounded",
		},
	}
}
