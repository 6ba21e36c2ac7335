// Package torture checks what usher promises, on the machine it is installed on:
// it runs the program itself against servers that misbehave (internal/fake), kills
// it, races it and lies to it, and counts what came of that.
//
// Each promise is one function that works through a plan drawn from a seed and ends
// with figures; a promise that was broken says how. Nothing of the user's is read or
// changed, everything happens in one temporary directory and on the loopback
// interface, and no process outlives the run.
//
//	Run ─► trial (plan, figures) ─► kills.go, races.go, …   one file a promise
//	          │ starts
//	          └► Child: this program again, as a process to be killed
package torture
