// Package mcp holds the types of the Model Context Protocol that cross usher's API:
// messages, ids, errors, requests and the names of the protocol.
//
// A program that embeds usher meets it in callbacks:
//
//	result, err := h.Call(ctx, "tickets", "export", args, &usher.CallOptions{
//		OnNotification: func(m mcp.Message) {
//			if m.Method == mcp.MethodNotifyProgress {
//				fmt.Printf("%s\n", m.Params)
//			}
//		},
//	})
//	if e := (*mcp.Error)(nil); errors.As(err, &e) {
//		fmt.Println(e.Code, e.Message)
//	}
//
// Payloads stay the bytes that were sent: [Parse] cuts a message into its parts
// without decoding them, and [ReadParams] reads the few members that a host decides
// on. A message that two readers could understand differently (duplicate or look-alike
// members) is refused.
//
// The package has no connections and no goroutines. Framing and HTTP headers are in
// internal/wire.
package mcp
