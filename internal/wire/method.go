package wire

import (
	"strings"

	"github.com/usher-mcp/usher/internal/jsonx"
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

// maxMethod bounds a method name, which goes into headers and logs.
const maxMethod = 256

// readMethod reads a method from valid JSON. Well-known methods cost no memory.
func readMethod(raw []byte) (method, bad string) {
	if jsonx.TypeOf(raw) != "string" {
		return "", "method is " + jsonx.TypeOf(raw) + ", not a string"
	}
	if s, ok := knownMethod(raw[1 : len(raw)-1]); ok {
		return s, ""
	}
	if len(raw) > maxMethod {
		return "", "method is longer than 256 bytes"
	}
	s, ok := jsonx.StrictText(raw)
	switch {
	case !ok:
		return "", "method is no valid text"
	case s == "":
		return "", "method is empty"
	case strings.ContainsFunc(s, control):
		return "", "method has a control character"
	}
	return s, ""
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
