// Package vault keeps what must outlive a process: grants, client
// registrations, pending logins, leases, pins, budgets, approvals, the last
// known catalog and the audit trail.
//
// It owns the [Store] contract, the kinds of records and which of them hold
// secrets, the [Secret] type that cannot be printed by accident, sealing
// ([Sealed], [Keys]) and where the key comes from, an in-memory store, and small
// typed views such as [Approvals], [Catalog] and [Secrets]. It does not own SQL (that is vault/sqlstore), nor
// what a grant means (that is auth), and it never speaks HTTP.
//
// The flow of a change that several processes may want to make: take a lease
// ([Hold]) → Get the record again → still needed? → do the work outside any
// transaction → PutFenced with the version that was read and the lease. No
// row changed means that somebody newer won: drop the result and Get again.
//
// The flow of a record: [Sealed] hands the data to [Keys] → the ring of data keys
// is read from the store → the master key that opens it is looked for, only now,
// in the keychain, a passphrase, a file or the environment → AES-256-GCM for what
// holds secrets, HMAC-SHA256 for the rest, with the record's key and version bound in.
//
// What somebody who can write the database, but does not have the master key, can
// still do: remove records; put back the whole row of an older version while no
// process runs that has seen a newer one; change leases and counters (budgets), which
// carry no code because databases change them in place; send change notices, which
// are only hints to read again. He cannot make, change, move or rename a record.
//
// Older ushers store records without codes. They are added once, when a newer usher
// first uses the keys; older ones that still run then get [ErrNewer] for everything
// that needs a key, and what they write without one is refused. So upgrade all
// processes that share a store at the same time.
//
// Every implementation passes vault/vaulttest.
package vault
