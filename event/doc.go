// Package event carries news inside one process: what changed, for whoever
// wants to know.
//
// It owns the types of the common events and a bus whose publishers never
// wait. It does not own the truth: an event is a hint, and whoever was too
// slow and lost some asks the room that owns the state again. It keeps no
// history, crosses no process boundary and imports nothing of ours.
//
// The flow: a room publishes to a [Bus] → every [Subscription] has its own
// bounded backlog → a reader calls [Subscription.Next] (or ranges over
// [Subscription.All]) and is told how many events it lost since the last one.
//
// Events never hold secrets; they are shown to people and written to logs.
package event
