// Package event delivers notifications of changes inside one process.
//
// A package publishes to a [Bus]; every [Subscription] has its own queue of limited
// length; a reader calls [Subscription.Next] (or ranges over [Subscription.All]) and
// learns how many events it lost since the last one.
//
// Publishers never wait. An event is a hint, not the state itself: a reader that was
// too slow and lost events reads the state again from the package that owns it.
// Events never hold secrets, because they are shown to users and written to logs.
//
// The package defines the common events. It keeps no history, crosses no process
// boundary and imports no other package of usher.
package event
