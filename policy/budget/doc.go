// Package budget limits how many calls are made: by all servers together, by one server,
// in a run of the program or in a window of time, by one session of a client, and by
// one task of an embedding program ([With]).
//
// [Budgets.Charge] takes one call from all budgets that apply, or from none of them; the
// error is an [*Error] that says which budget is spent and when it refills. Windows are
// shared with other processes through counters in the store. Calls go on while the
// store is away; the process then keeps to the limit on its own.
//
// A process reserves calls in chunks (window.go), so nothing is written per call, and
// gives back what it did not use.
package budget
