package upstream

import "github.com/usher-mcp/usher/internal/jsonx"

// AcceptForm makes the result of an accepted elicitation: the person's content,
// completed with the defaults of the requested schema for what was left out.
func AcceptForm(params, content []byte) []byte {
	props, _ := jsonx.Path(params, "requestedSchema", "properties")
	if jsonx.TypeOf(content) != "object" {
		content = []byte("{}")
	}
	for m := jsonx.Object(props); m.Next(); {
		def, has := jsonx.Get(m.Value, "default")
		if _, given := jsonx.Get(content, string(m.Key)); has && !given {
			content = jsonx.Set(content, string(m.Key), def)
		}
	}
	return jsonx.Set([]byte(`{"action":"accept"}`), "content", content)
}

// DeclineForm is the result of an elicitation that the person said no to.
func DeclineForm() []byte { return []byte(`{"action":"decline"}`) }

// CancelForm is the result of an elicitation that nobody answered.
func CancelForm() []byte { return []byte(`{"action":"cancel"}`) }
