package sqlstore

import "slices"

// migration is one numbered step of the schema and the way back. A migration
// that was released is never changed; what must change is a new one.
type migration struct {
	sqliteUp, sqliteDown     []string
	postgresUp, postgresDown []string
}

// migrations returns all steps; the schema's version is how many were taken.
func migrations() []migration {
	return []migration{recordsAndLeases(), countersAndAudit(), leaseTimes()}
}

// recordsAndLeases is step 1: records, the sequence of their versions, leases,
// the damaged records that were set aside, and the room that Ready keeps.
func recordsAndLeases() migration {
	down := []string{
		`DROP TABLE usher_room`, `DROP TABLE usher_quarantine`, `DROP TABLE usher_leases`, `DROP TABLE usher_records`,
	}
	return migration{
		sqliteUp: []string{
			`CREATE TABLE usher_sequence (id INTEGER PRIMARY KEY CHECK (id = 1), n INTEGER NOT NULL) STRICT`,
			`INSERT INTO usher_sequence (id, n) VALUES (1, 0)`,
			// data stands last, so that reading the rest touches no overflow page.
			`CREATE TABLE usher_records (
				kind TEXT NOT NULL, principal TEXT NOT NULL, name TEXT NOT NULL,
				version INTEGER NOT NULL, updated INTEGER NOT NULL, sum INTEGER NOT NULL, data BLOB NOT NULL,
				PRIMARY KEY (kind, principal, name)) STRICT, WITHOUT ROWID`,
			`CREATE TABLE usher_leases (
				name TEXT NOT NULL PRIMARY KEY, holder TEXT NOT NULL,
				epoch INTEGER NOT NULL, expires INTEGER NOT NULL) STRICT, WITHOUT ROWID`,
			// Without types: what is kept here may have lost its own.
			`CREATE TABLE usher_quarantine (
				id INTEGER PRIMARY KEY, at, reason, kind, principal, name, version, updated, sum, data)`,
			`CREATE TABLE usher_room (id INTEGER PRIMARY KEY, pad BLOB NOT NULL) STRICT`,
		},
		sqliteDown: slices.Concat(down, []string{`DROP TABLE usher_sequence`}),
		postgresUp: []string{
			`CREATE SEQUENCE usher_sequence`,
			`CREATE TABLE usher_records (
				kind TEXT COLLATE "C" NOT NULL, principal TEXT COLLATE "C" NOT NULL, name TEXT COLLATE "C" NOT NULL,
				version BIGINT NOT NULL, updated BIGINT NOT NULL, sum BIGINT NOT NULL, data BYTEA NOT NULL,
				PRIMARY KEY (kind, principal, name))`,
			`CREATE TABLE usher_leases (
				name TEXT COLLATE "C" NOT NULL PRIMARY KEY, holder TEXT NOT NULL,
				epoch BIGINT NOT NULL, expires BIGINT NOT NULL)`,
			`CREATE TABLE usher_quarantine (
				id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at BIGINT NOT NULL, reason TEXT,
				kind TEXT, principal TEXT, name TEXT, version BIGINT, updated BIGINT, sum BIGINT, data BYTEA)`,
			`CREATE TABLE usher_room (id BIGINT PRIMARY KEY, pad BYTEA NOT NULL)`,
		},
		postgresDown: slices.Concat(down, []string{`DROP SEQUENCE usher_sequence`}),
	}
}

// countersAndAudit is step 2: counters and the audit trail.
func countersAndAudit() migration {
	down := []string{`DROP TABLE usher_audit`, `DROP TABLE usher_counters`}
	return migration{
		sqliteUp: []string{
			`CREATE TABLE usher_counters (
				kind TEXT NOT NULL, principal TEXT NOT NULL, name TEXT NOT NULL, value INTEGER NOT NULL,
				PRIMARY KEY (kind, principal, name)) STRICT, WITHOUT ROWID`,
			// AUTOINCREMENT: a number is not used again after trimming.
			`CREATE TABLE usher_audit (
				seq INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, principal TEXT NOT NULL,
				action TEXT NOT NULL, target TEXT NOT NULL, outcome TEXT NOT NULL, detail BLOB NOT NULL) STRICT`,
			`CREATE INDEX usher_audit_at ON usher_audit (at)`,
		},
		sqliteDown: down,
		postgresUp: []string{
			`CREATE TABLE usher_counters (
				kind TEXT COLLATE "C" NOT NULL, principal TEXT COLLATE "C" NOT NULL, name TEXT COLLATE "C" NOT NULL,
				value BIGINT NOT NULL, PRIMARY KEY (kind, principal, name))`,
			`CREATE TABLE usher_audit (
				seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at BIGINT NOT NULL, principal TEXT NOT NULL,
				action TEXT NOT NULL, target TEXT NOT NULL, outcome TEXT NOT NULL, detail BYTEA NOT NULL)`,
			`CREATE INDEX usher_audit_at ON usher_audit (at)`,
		},
		postgresDown: down,
	}
}

// leaseTimes is step 3: how long each lease was given for, in milliseconds, so that
// those who wait can count it on their own clock.
func leaseTimes() migration {
	down := []string{`ALTER TABLE usher_leases DROP COLUMN ttl`}
	return migration{
		sqliteUp:     []string{`ALTER TABLE usher_leases ADD COLUMN ttl INTEGER NOT NULL DEFAULT 0`},
		sqliteDown:   down,
		postgresUp:   []string{`ALTER TABLE usher_leases ADD COLUMN ttl BIGINT NOT NULL DEFAULT 0`},
		postgresDown: down,
	}
}
