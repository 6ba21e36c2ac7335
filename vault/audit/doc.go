// Package audit writes, reads and verifies the audit log: which principal called
// what on which server, and the outcome.
//
//	log := audit.NewLog(store, &audit.Options{Key: loadKey})
//	log.Add(audit.Record{Principal: "ci", Server: "github", Method: "tools/call"})
//	log.Close()
//	chains, err := audit.Verify(ctx, store, &key, heads, time.Time{})
//
// [Log.Add] never waits and never fails. Records are written once a second as a
// [Block]; a killed process loses at most that second. Each process writes its own
// chain: every block holds the hash of the one before it and a code that needs the
// [Key], so [Verify] finds blocks that were changed, removed from the middle or
// inserted. Only heads that were kept elsewhere ([Head]) show that the end of a chain
// is missing.
//
// A record holds no secret and no argument, only the arguments' hash. Blocks of all
// earlier versions stay readable. The package stores blocks as [vault.AuditEntry]; it
// does not decide what is recorded (policy) nor how it is shown (cli).
package audit
