package fake

import "context"

// DemoFiles returns the tools of the file server that `usher demo` shows.
func DemoFiles() []Tool {
	say := func(text string) Handler {
		return func(context.Context, *Call) ([]byte, error) { return TextResult(text), nil }
	}
	path := `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`
	return []Tool{
		tool("read_text", "Read a text file", path, say("hello from the demo"), `"annotations":{"readOnlyHint":true}`),
		tool("list_folder", "List what is in a folder", path, say("hello.txt"), `"annotations":{"readOnlyHint":true}`),
		tool("delete", "Delete a file", path, say("nothing here can be deleted"), `"annotations":{"destructiveHint":true}`),
	}
}
