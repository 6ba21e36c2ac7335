// Package vault is the storage contract: what usher keeps longer than a process
// lives. That is grants, client registrations, pending logins, leases, pins,
// budgets, approvals, cached catalogs and the audit log.
//
// Open a [Store] with vault/sqlstore, or [NewMemory] for tests and for programs that
// must not write to disk, and wrap it with [keys.Sealed], so that records are
// encrypted or authenticated. Small typed views such as [Approvals], [Catalog] and
// [Secrets] read and write one kind of record each.
//
// To change a record that several processes may want to change: take a lease
// ([Hold]) → Get the record again → still needed? → do the work outside any
// transaction → PutFenced with the version that was read and the lease. No row
// changed means that another process was faster: drop the result and Get again.
//
// Guarantees: a write is durable when it returns, except of kinds that are
// [Expendable]; a record's version never repeats; a [Secret] cannot be printed by
// accident; a kind that nobody declared as plain is encrypted ([HoldsSecrets]).
// Every implementation passes vault/vaulttest.
//
// It does not own SQL (vault/sqlstore), encryption and its keys (vault/keys), the
// blocks of the audit log (vault/audit), nor what a grant means (auth), and it never
// speaks HTTP.
//
// [keys.Sealed]: https://pkg.go.dev/github.com/usher-mcp/usher/vault/keys#Sealed
package vault
