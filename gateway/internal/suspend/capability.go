package suspend

import (
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
)

// Capable reports whether an agent can answer any question of a server.
func Capable(caps []byte) bool {
	for m := jsonx.Object(caps); m.Next(); {
		switch string(m.Key) {
		case "elicitation", "sampling", "roots":
			return true
		}
	}
	return false
}

// CanAnswer says why an agent cannot answer a question; nil when it can.
func CanAnswer(caps []byte, method string, params []byte) *mcp.Error {
	name := ""
	switch method {
	case mcp.MethodElicit:
		name = "elicitation"
	case mcp.MethodSample:
		name = "sampling"
	case mcp.MethodRoots:
		name = "roots"
	default:
		return mcp.Errorf(mcp.CodeMethodNotFound, "%s is not supported by this client", method)
	}
	have, ok := jsonx.Get(caps, name)
	if !ok || jsonx.TypeOf(have) != "object" {
		return mcp.Errorf(mcp.CodeMethodNotFound, "%s is not supported by this client", method)
	}
	if method == mcp.MethodElicit && jsonx.GetText(params, "mode") == "url" && !CanOpenURL(caps) {
		return mcp.Errorf(mcp.CodeInvalidParams, "elicitation by URL is not supported by this client")
	}
	return nil
}

// CanOpenURL reports whether an agent can show a person a URL.
func CanOpenURL(caps []byte) bool {
	v, ok := jsonx.Path(caps, "elicitation", "url")
	return ok && jsonx.TypeOf(v) == "object"
}
