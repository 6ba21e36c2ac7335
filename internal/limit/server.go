package limit

import "time"

// Limits on what a connected MCP server can send, and on what it can make usher
// hold.
const (
	// ServerRequests is how many requests of a server one connection answers at once
	// by asking a client or a person (elicitation, sampling, roots).
	ServerRequests = 32
	// ServerRequestsPerCall is how many of them belong to one call.
	ServerRequestsPerCall = 16
	// ServerRequestBytes is what those requests of one connection take together.
	ServerRequestBytes = 16 << 20
	// ServerAnswers is how many answers to a server's requests wait to be written.
	ServerAnswers = 64
	// ServerAnswerWriters is how many of them are written at once: over HTTP, how many
	// connections they take.
	ServerAnswerWriters = 4
	// ServerAnswerTime is how long a server may take to accept one answer.
	ServerAnswerTime = 30 * time.Second
	// ServerCancels is how many cancellations one connection sends at once.
	ServerCancels = 64
	// ServerHTTPRequests is how many HTTP requests one connection has open, and so how
	// many descriptors it takes.
	ServerHTTPRequests = 512
	// ServerUnknownAnswers is how many answers to requests that were never made a
	// server may send on one connection.
	ServerUnknownAnswers = 1000
	// ServerMessages is how many messages per second that answer nothing are read from
	// one server: notifications, requests, garbage, empty events.
	ServerMessages = 2000
	// ServerBytes is how many bytes per second are read from one server, beyond the
	// first MiB of each message.
	ServerBytes = 32 << 20
	// ServerHeaderBytes is the size of the headers of one HTTP response.
	ServerHeaderBytes = 256 << 10
	// ServerInfoBytes is the size of what a server says about itself when it is connected
	// to: name, capabilities, instructions.
	ServerInfoBytes = 1 << 20
	// ServerSessionID is the size of a session id.
	ServerSessionID = 4 << 10
	// ServerStreamRestarts is how often in a row an event stream that ended within
	// ServerStreamLife is opened again after the time that the server names. After
	// that the time doubles up to half a minute.
	ServerStreamRestarts = 5
	// ServerStreamLife is how long an event stream must live for its end to be an
	// ordinary one.
	ServerStreamLife = 10 * time.Second
	// ServerListChanges is the time between two announcements of a changed list that are
	// passed on.
	ServerListChanges = 500 * time.Millisecond
	// ServerListPages is how many pages one list has.
	ServerListPages = 1000
	// ServerListItems is how many entries one list has.
	ServerListItems = 50_000
	// ServerListBytes is the size of all pages of one list together, unless the
	// server's maxMessageBytes is greater.
	ServerListBytes = 16 << 20
	// ServerListTime is how long reading all pages of one list may take, unless the
	// server's timeouts.list is greater.
	ServerListTime = 2 * time.Minute
	// Challenges is how many challenges of a refusal (WWW-Authenticate) are read.
	Challenges = 32
	// ChallengeParams is how many params of one challenge are read.
	ChallengeParams = 32
	// CatalogBytes is the size of the lists that are kept of one server for all
	// accounts and sessions together; lists that are the same count once.
	CatalogBytes = 128 << 20
	// ServerLogLines is how many lines per minute the log gets about the state of one
	// connection.
	ServerLogLines = 30
	// ServerLogReason is the size of the reason in such a line.
	ServerLogReason = 300
)

func serverRows() []Row {
	return []Row{
		{"ServerRequests", "server", "requests of a server that one connection answers at once", ServerRequests, "", "an error is the answer", "upstream.TestServerRequestsAreBounded"},
		{"ServerRequestsPerCall", "server", "requests of a server during one call, at once", ServerRequestsPerCall, "", "an error is the answer", "upstream.TestServerRequestsAreBounded"},
		{"ServerRequestBytes", "server", "size of the requests that one connection answers at once", ServerRequestBytes, "bytes", "an error is the answer", "upstream.TestServerRequestBytes"},
		{"ServerAnswers", "server", "answers to requests of a server that wait to be sent", ServerAnswers, "", "nothing more is read from the server until it accepts answers", "upstream.TestAnswersAreBounded"},
		{"ServerAnswerWriters", "server", "answers that are sent at once on one connection", ServerAnswerWriters, "", "the others wait", "upstream.TestAnswersAreBounded"},
		{"ServerAnswerTime", "server", "time to accept one answer", ServerAnswerTime, "", "the connection is closed, which counts as a failure of the server", "upstream.TestAnswerDeadline"},
		{"ServerCancels", "server", "cancellations that one connection sends at once", ServerCancels, "", "the others are not sent", "upstream.TestCancelsAreBounded"},
		{"ServerHTTPRequests", "server", "open HTTP requests of one connection", ServerHTTPRequests, "", "the others wait until their deadline", "upstream.TestOpenRequestsAreBounded"},
		{"ServerUnknownAnswers", "server", "answers to requests that were never made, on one connection", ServerUnknownAnswers, "", "the connection is closed, which counts as a failure of the server", "upstream.TestUnknownAnswers"},
		{"ServerMessages", "server", "messages per second that answer nothing", ServerMessages, "", "the server is read more slowly", "upstream.TestPaceOfChatter"},
		{"ServerBytes", "server", "bytes per second beyond the first MiB of a message", ServerBytes, "bytes", "the server is read more slowly", "upstream.TestPaceOfLargeMessages"},
		{"ServerHeaderBytes", "server", "headers of one HTTP response", ServerHeaderBytes, "bytes", "the request fails", "upstream.TestMisbehaviours"},
		{"ServerInfoBytes", "server", "what a server says about itself: name, capabilities, instructions", ServerInfoBytes, "bytes", "connecting fails", "upstream.TestServerInfoBytes"},
		{"ServerSessionID", "server", "a session id", ServerSessionID, "bytes", "connecting fails", "upstream.TestMisbehaviours"},
		{"ServerStreamRestarts", "server", "event streams in a row that end at once and are opened again without a growing wait", ServerStreamRestarts, "", "the wait doubles up to half a minute", "upstream.TestStreamRestarts"},
		{"ServerStreamLife", "server", "life of an event stream below which it counts as ended at once", ServerStreamLife, "", "see the row above", "upstream.TestStreamRestarts"},
		{"ServerListChanges", "server", "time between two announcements of a changed list", ServerListChanges, "", "those between are passed on as one", "host.TestListChangesAreThrottled"},
		{"ServerListPages", "server", "pages of one list", ServerListPages, "", "the list fails", "upstream.TestListGuards"},
		{"ServerListItems", "server", "entries of one list", ServerListItems, "", "the list fails", "upstream.TestListItems"},
		{"ServerListBytes", "server", "all pages of one list", ServerListBytes, "bytes", "the list fails; `maxMessageBytes` raises it", "upstream.TestListBytes"},
		{"ServerListTime", "server", "time to read one list", ServerListTime, "", "the list fails; `timeouts.list` raises it", "upstream.TestListTime"},
		{"Challenges", "server", "challenges of one HTTP response", Challenges, "", "further ones are not read", "internal/wire.TestChallengesAreLimited"},
		{"ChallengeParams", "server", "params of one challenge", ChallengeParams, "", "further ones are not read", "internal/wire.TestChallengesAreLimited"},
		{"CatalogBytes", "server", "lists kept of one server for all accounts and sessions", CatalogBytes, "bytes", "the lists of the principal that takes up the most room are dropped first, and read again when asked for", "host.TestCatalogsOfOneServerAreLimited"},
		{"ServerLogLines", "server", "log lines per minute about the state of one connection", ServerLogLines, "", "the next line says how many were left out", "host.TestLogIsBounded"},
		{"ServerLogReason", "server", "reason in a log line about the state of a connection", ServerLogReason, "bytes", "it is cut", "host.TestLogIsBounded"},
	}
}
