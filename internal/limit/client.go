package limit

import (
	"time"
)

// Limits on what a client of the gateway can send or hold open.
const (
	// Connections is how many connections a gateway keeps.
	Connections = 4096
	// NewConnections is how many of them nobody has authenticated on yet.
	NewConnections = 1024
	// NewConnectionIdle is how long such a one may wait for a request.
	NewConnectionIdle = 10 * time.Second
	// IdlePrincipals is of how many principals without a request in flight the gateway
	// keeps a count.
	IdlePrincipals = 4096
	// HeaderBytes is how large the header of a request may be.
	HeaderBytes = 16 << 10
	// HeaderTime is how long the header of a request may take.
	HeaderTime = 5 * time.Second

	// BatchMessages is how many messages a batch of protocol 2025-03-26 may have.
	BatchMessages = 100
	// BatchWorkers is how many requests of one batch run at once.
	BatchWorkers = 8
	// BatchAnswerBytes is how large the answers to one batch may be together.
	BatchAnswerBytes = 16 << 20

	// SessionNotifications is how many notifications of a client wait to be passed on.
	SessionNotifications = 32
	// SessionNotificationsPerSecond is how many of them a session may send.
	SessionNotificationsPerSecond = 50
	// NotificationBytes is how large one of them may be.
	NotificationBytes = 64 << 10

	// CallQuestions is how many questions of a server a call holds unanswered.
	CallQuestions = 16
	// CallQuestionsTotal is how many questions a server may ask during one call.
	CallQuestionsTotal = 256
	// CallQuestionBytes is how large the unanswered questions of a call may be together.
	CallQuestionBytes = 4 << 20
	// CallLifetime is how long a call that was suspended may take in all.
	CallLifetime = time.Hour
	// SessionQuestions is how many questions of servers a session holds unanswered.
	SessionQuestions = 64

	// HeldBytes is what the gateway holds for clients that do not read or are away.
	HeldBytes = 64 << 20
	// HeldBytesPerPrincipal is one principal's share of them.
	HeldBytesPerPrincipal = 32 << 20

	// RequestBytes is how large a request may be, by default.
	RequestBytes = 16 << 20
	// BodyBytes is how large the bodies of all requests in flight may be together; small
	// ones are not counted.
	BodyBytes = 64 << 20
	// BodyBytesPerPrincipal is one principal's share of them.
	BodyBytesPerPrincipal = 32 << 20
	// ClientDetailBytes is how large the capabilities of a client may be, and its name
	// and version.
	ClientDetailBytes = 16 << 10
	// Calls is how many requests of a principal are in flight, by default.
	Calls = 64
	// Streams is how many streams of a principal are open, by default.
	Streams = 256
	// Sessions is how many legacy sessions there are. One principal may have a quarter.
	Sessions = 4096
	// SessionIdle is how long a session may be idle, by default.
	SessionIdle = 30 * time.Minute
	// SuspendedCalls is how many calls wait for an answer of their client. One principal
	// may have a tenth.
	SuspendedCalls = 1000
	// SuspendedTime is how long each of them waits.
	SuspendedTime = 10 * time.Minute

	// IssuerKeysInterval is how often an issuer is asked for its keys, whatever tokens
	// come.
	IssuerKeysInterval = 10 * time.Second
	// IssuerKeysBytes is how large its keys may be.
	IssuerKeysBytes = 1 << 20
	// TokenBytes is how large a bearer token may be.
	TokenBytes = 12 << 10
	// Completions is how many lists the gateway remembers to have looked through.
	Completions = 1024
)

func clientRows() []Row {
	return []Row{
		{"Connections", "client", "connections", Connections, "", "an idle connection of the principal that has most is closed in favour of the new one", "gateway.TestIdleConnectionsOfPrincipals"},
		{"NewConnections", "client", "connections on which nobody has authenticated yet", NewConnections, "", "the longest idle one of the address that has most is closed in favour of the new one", "gateway.TestIdleConnectionsLockNobodyOut"},
		{"NewConnectionIdle", "client", "idle time of such a connection", NewConnectionIdle, "", "it is closed", "gateway.TestNewConnectionIdle"},
		{"IdlePrincipals", "client", "principals without a request in flight of which the gateway keeps a count", IdlePrincipals, "", "their counts are dropped", "gateway.TestIdlePrincipalsAreForgotten"},
		{"HeaderBytes", "client", "header of a request", HeaderBytes, "bytes", "it is refused with HTTP 431", "gateway.TestHeadersAreBounded"},
		{"HeaderTime", "client", "time for the header of a request", HeaderTime, "", "the connection is closed", "gateway/internal/http1.TestBounds"},
		{"BatchMessages", "client", "messages of one batch (protocol 2025-03-26)", BatchMessages, "", "the batch is refused with HTTP 400", "gateway.TestBatchIsBounded"},
		{"BatchWorkers", "client", "requests of one batch that run at once", BatchWorkers, "", "the others wait; each takes one of the principal's slots", "gateway.TestBatchWorkers"},
		{"BatchAnswerBytes", "client", "answers to one batch", BatchAnswerBytes, "bytes", "further answers are replaced with an error", "gateway.TestBatchIsBounded"},
		{"SessionNotifications", "client", "notifications of a session that wait to be passed on", SessionNotifications, "", "further ones are dropped", "gateway.TestNotificationQueueIsBounded"},
		{"SessionNotificationsPerSecond", "client", "notifications of a session per second", SessionNotificationsPerSecond, "", "further ones are dropped", "gateway.TestNotificationRateIsLimited"},
		{"NotificationBytes", "client", "one notification that is passed on", NotificationBytes, "bytes", "it is dropped", "gateway.TestUnknownNotificationsAreDropped"},
		{"CallQuestions", "server", "unanswered questions of a server during one call", CallQuestions, "", "further ones are answered with an error", "gateway.TestQuestionsAreBounded"},
		{"CallQuestionsTotal", "server", "questions of a server during one call", CallQuestionsTotal, "", "further ones are answered with an error", "gateway.TestQuestionsOfACallAreBounded"},
		{"CallQuestionBytes", "server", "unanswered questions of one call", CallQuestionBytes, "bytes", "further ones are answered with an error", "gateway.TestQuestionBytesAreBounded"},
		{"CallLifetime", "server", "time that a suspended call may take in all", CallLifetime, "", "the call is cancelled", "gateway.TestSuspendedCallEnds"},
		{"SessionQuestions", "server", "unanswered questions of servers in one session", SessionQuestions, "", "further ones are answered with an error", "gateway.TestSessionQuestionsAreBounded"},
		{"HeldBytes", "server and client", "questions, queued messages and replay buffers of clients that do not read or are away", HeldBytes, "bytes", "further questions are answered with an error, other messages are dropped", "gateway/internal/stream.TestHeldBytes"},
		{"HeldBytesPerPrincipal", "server and client", "of these, for one principal", HeldBytesPerPrincipal, "bytes", "as above", "gateway/internal/stream.TestHeldBytes"},
		{"RequestBytes", "client", "a request (default of maxBodyBytes)", RequestBytes, "bytes", "it is refused with HTTP 413", "gateway.TestBodies"},
		{"BodyBytes", "client", "bodies above 64 KiB of all requests in flight", BodyBytes, "bytes", "further ones are refused with HTTP 429", "gateway.TestLargeBodiesAreBounded"},
		{"BodyBytesPerPrincipal", "client", "of these, for one principal", BodyBytesPerPrincipal, "bytes", "as above", "gateway.TestLargeBodiesAreBounded"},
		{"ClientDetailBytes", "client", "capabilities, and name and version, of a client", ClientDetailBytes, "bytes", "the request is answered with an error", "gateway.TestClientDetailsAreBounded"},
		{"Calls", "client", "requests of a principal in flight (default of maxConcurrentCalls)", Calls, "", "further ones are refused with HTTP 429", "gateway.TestTooManyCalls"},
		{"Streams", "client", "open streams of a principal", Streams, "", "further ones are refused with HTTP 429", "gateway.TestStreamsAreBounded"},
		{"Sessions", "client", "legacy sessions; a quarter for one principal", Sessions, "", "the longest idle session of the principal ends, or the new one is refused with HTTP 429", "gateway.TestSessionsAreBounded"},
		{"SessionIdle", "client", "idle time of a legacy session (default of sessionIdle)", SessionIdle, "", "the session ends", "gateway.TestIdleSessionsEnd"},
		{"SuspendedCalls", "server", "calls that wait for an answer of their client; a tenth for one principal", SuspendedCalls, "", "the question is answered with an error", "gateway.TestSuspendedCallsAreLimited"},
		{"SuspendedTime", "server", "time that a suspended call waits for one answer", SuspendedTime, "", "the call is cancelled", "gateway.TestSuspendedCallExpires"},
		{"IssuerKeysInterval", "client", "time between two requests for an issuer's keys (tokens with an unknown key id)", IssuerKeysInterval, "", "the token is checked against the known keys", "gateway/authn.TestForgedTokensFetchKeysSeldom"},
		{"IssuerKeysBytes", "authorization server", "keys of an issuer", IssuerKeysBytes, "bytes", "the keys are not used", "gateway/authn.TestLargeKeySetIsRefused"},
		{"TokenBytes", "client", "a bearer token", TokenBytes, "bytes", "it is refused with HTTP 401", "gateway/authn.TestLargeTokenIsRefused"},
		{"Completions", "client", "long lists that the gateway remembers to have looked through", Completions, "", "all are dropped and looked through again", "gateway.TestCompletionsAreBounded"},
	}
}
