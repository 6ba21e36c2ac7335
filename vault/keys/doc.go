// Package keys encrypts and authenticates the records of a store, and manages the
// keys that this takes.
//
//	k := keys.New(store, keys.Options{Setting: "auto", File: path})
//	sealed := keys.Sealed(store, k) // a vault.Store
//
// Records that hold secrets are encrypted with AES-256-GCM, all others carry an
// HMAC-SHA256; the record's key and version are bound in. The data keys lie in the
// store itself, in the ring, wrapped by a master key. The master key is in the
// operating system's keychain, under a passphrase, in a file or in the environment
// ([Options].Setting), and is looked for when the first record is read or written.
// [Keys.Rotate] replaces both while the store is in use.
//
// Someone who can write the database but does not have the master key cannot make,
// change, move or rename a record. He can still remove records; put back the whole
// row of an older version while no process runs that has seen a newer one; change
// leases and counters (budgets), which carry no code because databases change them
// in place; and send change notices, which are only hints to read again.
//
// Early versions of usher stored records without authentication codes. The first use
// of the keys by a later version adds them (migrate.go). Early versions that still
// run then get [vault.ErrNewer] for everything that needs a key, and what they write
// without one is refused: upgrade all processes that share a store at the same time.
//
// It does not own storage ([vault.Store]) nor what the records mean.
package keys
