// Package bulk logs many accounts in at once and tells everybody who looks how
// far each of them is.
//
// It owns the order of work over many servers: how many at a time, how long each
// may take, what counts as skipped, which logins wait, and one stream of events.
// It does not own OAuth (that is auth, behind [Engine]), nor what a person sees:
// the terminal and the web page show what [Driver.Rows] and the events say. It
// opens no browser.
//
// The flow: [Driver.Prepare] begins a login for every server that its mode selects,
// several at once, and hands out each [Outcome] as soon as it is there. A login
// that waits for a person is watched, whichever process finishes it: this process, by
// [Driver.Complete], [Driver.Paste] or the engine's own listener, or another one
// that shares the store. A slow, broken or hanging server costs the others nothing
// but one of the places.
//
// Events are hints and may be lost by a slow reader, who is told how many;
// [Driver.Rows] is always the truth. Waiting logins are in the engine's store, so
// that closing the driver loses none of them: the next one takes them up.
package bulk
