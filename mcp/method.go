package mcp

import (
	"strings"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/internal/lookalike"
)

// Methods of requests and notifications.
const (
	MethodInitialize     = "initialize"
	MethodPing           = "ping"
	MethodDiscover       = "server/discover"
	MethodListen         = "subscriptions/listen"
	MethodToolsList      = "tools/list"
	MethodToolsCall      = "tools/call"
	MethodPromptsList    = "prompts/list"
	MethodPromptsGet     = "prompts/get"
	MethodResourcesList  = "resources/list"
	MethodTemplatesList  = "resources/templates/list"
	MethodResourcesRead  = "resources/read"
	MethodSubscribe      = "resources/subscribe"
	MethodUnsubscribe    = "resources/unsubscribe"
	MethodComplete       = "completion/complete"
	MethodSetLevel       = "logging/setLevel"
	MethodElicit         = "elicitation/create"
	MethodSample         = "sampling/createMessage"
	MethodRoots          = "roots/list"
	MethodNotifyInit     = "notifications/initialized"
	MethodNotifyCancel   = "notifications/cancelled"
	MethodNotifyProgress = "notifications/progress"
	MethodNotifyMessage  = "notifications/message"
	MethodNotifyTools    = "notifications/tools/list_changed"
	MethodNotifyPrompts  = "notifications/prompts/list_changed"
	MethodNotifyRes      = "notifications/resources/list_changed"
	MethodNotifyUpdated  = "notifications/resources/updated"
	MethodNotifyRoots    = "notifications/roots/list_changed"
	MethodNotifyListenOK = "notifications/subscriptions/acknowledged"
	MethodNotifyElicited = "notifications/elicitation/complete"
)

const methodTasksPrefix = "tasks/"

// readMethod reads a method from valid JSON. Well-known methods cost no memory.
func readMethod(raw []byte) (method, bad string) {
	if jsonx.TypeOf(raw) != "string" {
		return "", "method is " + jsonx.TypeOf(raw) + ", not a string"
	}
	if s, ok := knownMethod(raw[1 : len(raw)-1]); ok {
		return s, ""
	}
	if len(raw) > 2*limit.MethodSize {
		return "", "method is longer than 256 bytes"
	}
	s, ok := jsonx.StrictText(raw)
	switch {
	case !ok:
		return "", "method is not valid text"
	case s == "":
		return "", "method is empty"
	case strings.ContainsFunc(s, control):
		return "", "method has a control character"
	}
	return s, ""
}

// CheckMethod refuses a method that only resembles one of the protocol's: what is
// decided for tools/call does not hold for tools//call or TOOLS/call, and a lenient
// server may read the one as the other. Methods that nobody knows pass when they are
// plain ASCII of a reasonable length. Well-known methods cost no memory.
func CheckMethod(method string) *Error {
	if KnownMethod(method) {
		return nil
	}
	switch known := lookalike.Of([]byte(method), guardedMethods[:]); {
	case known != "":
		return Errorf(CodeMethodNotFound, "method %.60q can be taken for %q", method, known)
	case len(method) > limit.MethodSize:
		return Errorf(CodeMethodNotFound, "the method has more than %d bytes", limit.MethodSize)
	case !plainMethod(method):
		return Errorf(CodeMethodNotFound, "method %.60q is not plain ASCII", method)
	}
	return nil
}

// plainMethod reports whether a method is made of the characters that methods have,
// and has no part that a reader of paths would leave out.
func plainMethod(method string) bool {
	for i := range len(method) {
		c := method[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '_', c == '-', c == '.', c == '$', c == ':':
		case c == '/' && i > 0 && i < len(method)-1 && method[i+1] != '/':
		default:
			return false
		}
	}
	return method != "" && !strings.Contains("/"+method+"/", "/../") && !strings.Contains("/"+method+"/", "/./")
}

// guardedMethods are the methods of requests and notifications that something is
// decided by, here or at a server.
var guardedMethods = [...]string{
	MethodInitialize, MethodPing, MethodDiscover, MethodListen, MethodToolsList, MethodToolsCall, MethodPromptsList, MethodPromptsGet,
	MethodResourcesList, MethodTemplatesList, MethodResourcesRead, MethodSubscribe, MethodUnsubscribe, MethodComplete, MethodSetLevel,
	MethodElicit, MethodSample, MethodRoots, MethodNotifyInit, MethodNotifyCancel, MethodNotifyProgress, MethodNotifyMessage,
	MethodNotifyTools, MethodNotifyPrompts, MethodNotifyRes, MethodNotifyUpdated, MethodNotifyRoots, MethodNotifyListenOK, MethodNotifyElicited,
	"tasks/get", "tasks/list", "tasks/result", "tasks/cancel", "tasks/update",
}

func control(r rune) bool { return r < 0x20 || r == 0x7f }

// KnownMethod reports whether a method is one of the protocol's own, of any revision.
func KnownMethod(method string) bool {
	_, ok := knownMethod([]byte(method))
	return ok
}

func knownMethod(text []byte) (string, bool) {
	switch string(text) {
	case MethodInitialize:
		return MethodInitialize, true
	case MethodPing:
		return MethodPing, true
	case MethodDiscover:
		return MethodDiscover, true
	case MethodListen:
		return MethodListen, true
	case MethodToolsList:
		return MethodToolsList, true
	case MethodToolsCall:
		return MethodToolsCall, true
	case MethodPromptsList:
		return MethodPromptsList, true
	case MethodPromptsGet:
		return MethodPromptsGet, true
	case MethodResourcesList:
		return MethodResourcesList, true
	case MethodTemplatesList:
		return MethodTemplatesList, true
	case MethodResourcesRead:
		return MethodResourcesRead, true
	case MethodSubscribe:
		return MethodSubscribe, true
	case MethodUnsubscribe:
		return MethodUnsubscribe, true
	case MethodComplete:
		return MethodComplete, true
	case MethodSetLevel:
		return MethodSetLevel, true
	case MethodElicit:
		return MethodElicit, true
	case MethodSample:
		return MethodSample, true
	case MethodRoots:
		return MethodRoots, true
	case MethodNotifyInit:
		return MethodNotifyInit, true
	case MethodNotifyCancel:
		return MethodNotifyCancel, true
	case MethodNotifyProgress:
		return MethodNotifyProgress, true
	case MethodNotifyMessage:
		return MethodNotifyMessage, true
	case MethodNotifyTools:
		return MethodNotifyTools, true
	case MethodNotifyPrompts:
		return MethodNotifyPrompts, true
	case MethodNotifyRes:
		return MethodNotifyRes, true
	case MethodNotifyUpdated:
		return MethodNotifyUpdated, true
	case MethodNotifyRoots:
		return MethodNotifyRoots, true
	case MethodNotifyListenOK:
		return MethodNotifyListenOK, true
	case MethodNotifyElicited:
		return MethodNotifyElicited, true
	}
	return "", false
}
