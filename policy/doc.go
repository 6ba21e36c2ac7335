// Package policy is the gate that every call passes on its way to a server.
//
// It owns what may be used (rules), how often (budgets), whether a tool still is
// what it was when it was first seen (pins), and whether an earlier answer will do
// (cache). It refuses to own connections and restarts, which are host's, and what
// an agent is shown, which is surface's. Arguments, definitions and results stay
// the bytes they are; the gate looks at copies.
//
// The way of a call stands in one function, [Gate.Call]:
//
//	allow → budget → pin → cache → host
//
// Every refusal is typed ([ErrDenied], [ErrBudget], [ErrSchemaChanged]) and carries data:
// which rule, when it refills, or what changed.
//
// A call to which nothing applies costs a few atomic loads and map look-ups:
// rules are compiled when the configuration is read, verdicts and pins are
// remembered per tool, and arguments are only brought into canonical form for
// tools that have declared a ttlMs before.
//
// Names are compared twice over. An allow rule matches the exact bytes of a name,
// so that no look-alike is taken for what was allowed. A deny rule also matches
// through case, look-alikes, invisible characters and separators, so that nothing
// slips past it that some server would take for the denied tool.
package policy
