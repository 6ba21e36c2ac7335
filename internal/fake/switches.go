package fake

import (
	"strconv"
	"strings"
)

// Info documents one switch.
type Info struct {
	Name  string
	Value string // what its value means and the default; "" when it takes none
	Doc   string
	On    string // methods it applies to unless told otherwise; "" is all
	Only  string // transports on which it has an effect: "stdio", "http"; "" is all
}

// number reports whether the value is one: then its default is.
func (i Info) number() bool {
	_, def, _ := strings.Cut(i.Value, ", ")
	_, err := strconv.Atoi(def)
	return err == nil
}

// Info.On for faults of the answer to one request: the handshake stays sound, so
// that the fault is met where it hurts.
const onCall = "tools/call"

// Switches returns all switches, in the order of the documentation.
func Switches() []Info {
	var all []Info
	for _, group := range [][]Info{lifeSwitches, frameSwitches, answerSwitches, listSwitches, definitionSwitches, noiseSwitches, floodSwitches, httpSwitches} {
		all = append(all, group...)
	}
	return all
}

// Whether and when it answers at all, and how the process lives.
var lifeSwitches = []Info{
	{Name: "silent", Doc: "never answers anything"},
	{Name: "silent-probe", Doc: "never answers server/discover; works as a legacy server"},
	{Name: "exit-on-probe", Doc: "exits when it is asked server/discover"},
	{Name: "exit-on-start", Doc: "exits at once with a line on stderr", Only: "stdio"},
	{Name: "crash-loop", Value: "requests it survives, 0", Doc: "exits at the request after that many"},
	{Name: "latency", Value: "milliseconds, 100", Doc: "waits before it handles a request"},
	{Name: "neverexit", Value: "seconds it lives on at most, 600", Doc: "ignores the end of stdin and SIGTERM", Only: "stdio"},
	{Name: "fork-child", Value: "seconds the child lives, 300", Doc: "starts a signal-deaf child that keeps stdout open", Only: "stdio"},
	{Name: "setsid-child", Value: "seconds the child lives, 300", Doc: "the same in a session of its own", Only: "stdio"},
	{Name: "stderrflood", Value: "KiB, 1024", Doc: "writes that much to stderr at the start and at each request", Only: "stdio"},
	{Name: "cancelled-ignored", Doc: "goes on after a cancellation and answers"},
}

// What is wrong with the bytes of a frame.
var frameSwitches = []Info{
	{Name: "garbage", Value: "lines, 3", Doc: "writes lines that are not messages at the start and before each answer"},
	{Name: "hugegarbage", Value: "MB, 100", Doc: "writes one line without JSON of that size before the answer", On: onCall},
	{Name: "bigline", Value: "MB, 100", Doc: "answers with one message of that size", On: onCall},
	{Name: "badutf8", Doc: "puts invalid UTF-8 into the answer", On: onCall},
	{Name: "deep", Value: "levels, 100000", Doc: "nests the result that deep", On: onCall},
	{Name: "hugenumber", Value: "digits, 100000", Doc: "puts 1e400 and a number of that many digits into the result", On: onCall},
	{Name: "crlf", Doc: "ends lines with CR LF, which readers should stand", Only: "stdio"},
	{Name: "slowbyte", Value: "milliseconds per byte, 200", Doc: "writes the answer byte by byte", On: onCall},
	{Name: "halfclose", Value: "headers or body, body", Doc: "does the work, then closes after the headers or in the middle of the answer", On: onCall},
}

// What is wrong with an answer.
var answerSwitches = []Info{
	{Name: "wrongid", Doc: "answers with an id nobody used", On: onCall},
	{Name: "dup", Doc: "answers twice", On: onCall},
	{Name: "idtype", Doc: "answers with the id as a string instead of a number", On: onCall},
	{Name: "nullid-error", Doc: "answers with an error whose id is null", On: onCall},
	{Name: "unsolicited", Value: "count, 1000", Doc: "sends that many answers to questions nobody asked, then the right one", On: onCall},
	{Name: "badversion", Value: "version, 1999-01-01", Doc: "claims to speak that version only", On: "initialize,server/discover"},
	{Name: "noresulttype", Doc: "leaves resultType out"},
	{Name: "unknown-resulttype", Doc: "answers with a resultType nobody defined", On: onCall},
	{Name: "tasks-result", Doc: `answers with resultType "task"`, On: onCall},
	{Name: "nullresult", Doc: "answers with result null", On: onCall},
	{Name: "stateonly", Doc: "answers a first try with a requestState and no inputRequests", On: onCall},
	{Name: "askforever", Doc: "answers every try with input_required", On: onCall},
	{Name: "case-variant", Doc: "adds Result and ID beside result and id", On: onCall},
	{Name: "duplicate-key", Doc: "has the member result twice", On: onCall},
	{Name: "batch", Doc: "wraps the answer in a JSON-RPC batch", On: onCall},
	{Name: "rpc-error", Value: "code, -32603", Doc: "answers with that JSON-RPC error", On: onCall},
}

// What is wrong with lists and definitions.
var listSwitches = []Info{
	{Name: "loop", Doc: "every page of tools/list has the same next cursor"},
	{Name: "emptycursor", Doc: "the cursor of the second page of tools/list is the empty string"},
	{Name: "manypages", Value: "pages, 5000", Doc: "tools/list has that many pages of one tool"},
	{Name: "manytools", Value: "tools, 10000", Doc: "offers that many tools more"},
	{Name: "list-changed", Value: "lists, 1", Doc: "after that many lists changes the description of echo and says so"},
	{Name: "schema-change", Value: "start, 2", Doc: "from that start on (as the ledger counts) echo has another definition"},
	{Name: "poison", Doc: "the description of echo hides instructions in invisible characters and escapes"},
	{Name: "remote-ref", Value: "URL", Doc: "the schema of echo refers to that URL"},
	{Name: "duplicate-tools", Doc: "offers echo twice, with different definitions"},
	{Name: "lying-annotations", Doc: "calls every tool read-only and idempotent"},
	{Name: "invalid-header-tools", Doc: "offers tools with invalid x-mcp-header annotations too"},
}

// What it sends that nobody asked for.
var noiseSwitches = []Info{
	{Name: "ping", Doc: "pings the client before it answers (legacy only)", On: onCall},
	{Name: "notification-flood", Value: "count, 10000", Doc: "sends that many log notifications before the answer", On: onCall},
	{Name: "progress-flood", Value: "count, 10000", Doc: "sends that many progress notifications before the answer", On: onCall},
	{Name: "endless-progress", Value: "milliseconds between, 10", Doc: "sends progress forever and never answers", On: onCall},
	{Name: "wrong-token", Doc: "sends progress for a token nobody used", On: onCall},
	{Name: "unknown-request", Doc: "asks the client a method that does not exist, and waits for its answer (legacy only)", On: onCall},
}

// What is wrong on the level of HTTP.
var httpSwitches = []Info{
	{Name: "sse", Doc: "answers every POST as an event stream, which is allowed", Only: "http"},
	{Name: "event-ids", Value: "retry in milliseconds, 10", Doc: "event streams have ids, a first empty event and a retry time, which is allowed", Only: "http"},
	{Name: "sse-multiline", Doc: "splits each message over two data lines, which is allowed", Only: "http"},
	{Name: "http-status", Value: "status, 500", Doc: "answers every POST with that status", Only: "http"},
	{Name: "retry-after", Value: "header value; 1", Doc: "http-status has this Retry-After", Only: "http"},
	{Name: "challenge", Value: "header value, Bearer", Doc: "http-status and unauthorized have this WWW-Authenticate", Only: "http"},
	{Name: "body", Value: "html, text, json, rpc or empty; html", Doc: "what http-status has as its body", Only: "http"},
	{Name: "unauthorized", Value: "token, secret", Doc: "answers 401 unless the request has this bearer", Only: "http"},
	{Name: "redirect", Value: "URL", Doc: "answers every POST with 307 to that URL", Only: "http"},
	{Name: "redirect-308", Value: "URL", Doc: "answers every POST with 308 to that URL", Only: "http"},
	{Name: "html", Doc: "answers 200 with a page of HTML", Only: "http"},
	{Name: "wrong-content-type", Value: "type, text/plain", Doc: "answers with JSON under another content type", Only: "http"},
	{Name: "truncated-json", Doc: "the body ends in the middle of the JSON, cleanly", On: onCall, Only: "http"},
	{Name: "emptybody", Doc: "answers a request with 202 and nothing", On: onCall, Only: "http"},
	{Name: "gzip", Value: "MB, 100", Doc: "answers with a compressed body that unpacks to that size", On: onCall, Only: "http"},
	{Name: "bigheader", Value: "KiB, 1024", Doc: "answers with a header of that size", On: onCall, Only: "http"},
	{Name: "drip", Value: "milliseconds between, 10", Doc: "answers with an event stream of comments that never ends", On: onCall, Only: "http"},
	{Name: "session-lost", Value: "requests a session survives, 1", Doc: "answers 404 to a session that made that many requests", Only: "http"},
	{Name: "no-session", Doc: "gives out no session id, which is allowed", Only: "http"},
	{Name: "no-get", Doc: "answers GET with 405, which is allowed", Only: "http"},
	{Name: "push-drop", Value: "messages before, 0", Doc: "ends the stream of a GET after that many messages", Only: "http"},
	{Name: "endpoint", Value: "URL", Doc: "old HTTP+SSE: names that URL as its endpoint", Only: "http"},
	{Name: "no-endpoint", Doc: "old HTTP+SSE: never names an endpoint", Only: "http"},
	{Name: "hang-after-headers", Doc: "sends the headers and then nothing", On: onCall, Only: "http"},
	{Name: "sse-drop", Value: "plain or ids, plain", Doc: "does the work, then ends the event stream before the answer; with ids the client may fetch it with Last-Event-ID", On: onCall, Only: "http"},
	{Name: "listen-drop", Value: "notifications before, 0", Doc: "drops a subscriptions/listen stream without a result after that many notifications", On: "subscriptions/listen"},
}
