// Package suspend holds calls that wait for an answer of their client.
//
// A server of the legacy protocol asks a question in the middle of a call; a client of the
// stateless protocol gets it as `input_required` and answers with a retry. A [Call] runs
// apart from the HTTP request that brought it: Attach connects it with the request that
// waits now, Ask and Notify are what the server calls, Suspend returns the open questions
// and Answer gives it the client's answers. A [Store] keeps suspended calls, limited in
// number and time, until a retry takes them.
//
// The sealed state that finds a call again belongs to the gateway.
package suspend
