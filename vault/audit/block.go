package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/usher-mcp/usher/vault"
)

// Block is a run of records that one process wrote at once. The blocks of a process,
// its chain, are numbered from 1, and each holds the hash of the one before: what
// is changed, left out or put in later does not fit. Chains are apart, so that
// processes do not wait for each other.
type Block struct {
	Seq     int64 // given by the store
	Version int
	Writer  string // names the chain; random
	Process string // where it was written, host:pid
	Number  int64
	Prev    string // hash of the block before; empty for the first
	Hash    string
	// Key names the key that authenticates the block, empty when none does; see
	// [Verify].
	Key string
	// Lost is how many records before this block could not be kept, because the store
	// was away for too long.
	Lost int64
	// End says that the process ended in order: nothing comes after it.
	End     bool
	Records []Record
	// Problem says why the block cannot be trusted: it is not what its hash says,
	// or cannot be read. Only Seq is sure then.
	Problem error

	code   string
	detail []byte
}

// blockAction marks the entries of the audit log that hold a block.
const blockAction = "acts"

// Versions of blocks. They differ in how the records stand after the header.
const (
	blockVersionLines  = 1 // as JSON, one a line
	blockVersionPacked = 2 // see packRecords
	blockVersionKeyed  = 3 // packed; after the hash stands a code, see Key
	blockVersion       = blockVersionKeyed
)

// blockHeader is the first line of a block, as JSON in every version, so that an
// older usher can say that it does not know the rest.
type blockHeader struct {
	Version int    `json:"v"`
	Writer  string `json:"writer"`
	Process string `json:"process"`
	Number  int64  `json:"block"`
	Prev    string `json:"prev,omitempty"`
	Count   int    `json:"count"`
	Lost    int64  `json:"lost,omitempty"`
	End     bool   `json:"end,omitempty"`
	Key     string `json:"key,omitempty"` // of the code
}

// entry makes the block that holds records.
func (h blockHeader) entry(at time.Time, records []Record, key Key) (vault.AuditEntry, error) {
	h.Version, h.Key = blockVersionPacked, key.id
	if key.key != nil {
		h.Version = blockVersionKeyed
	}
	head, err := json.Marshal(h)
	if err != nil {
		return vault.AuditEntry{}, err
	}
	detail := make([]byte, 0, len(head)+1024+len(records)*56)
	detail = packRecords(append(append(detail, head...), '\n'), records)
	sum := sha256.Sum256(detail)
	outcome := hex.EncodeToString(sum[:])
	if key.key != nil {
		outcome += codeSeparator + key.code(detail)
	}
	return vault.AuditEntry{At: at, Action: blockAction, Target: h.Writer, Outcome: outcome, Detail: detail}, nil
}

// readBlock takes an entry apart. Whoever could write the database may have written
// anything.
func readBlock(e vault.AuditEntry) Block {
	b := Block{Seq: e.Seq, Writer: e.Target, detail: e.Detail}
	b.Hash, b.code, _ = strings.Cut(e.Outcome, codeSeparator)
	sum := sha256.Sum256(e.Detail)
	if hex.EncodeToString(sum[:]) != b.Hash {
		b.Problem = fmt.Errorf("entry %d of the audit log was changed after it was written", e.Seq)
		return b
	}
	head, rest, _ := bytes.Cut(e.Detail, []byte("\n"))
	var h blockHeader
	if err := json.Unmarshal(head, &h); err != nil {
		b.Problem = fmt.Errorf("entry %d of the audit log cannot be read: %w", e.Seq, err)
		return b
	}
	if h.Writer != e.Target || h.Version > blockVersion {
		b.Problem = fmt.Errorf("entry %d of the audit log is of chain %.40q and version %d, not of %.40q and at most %d (a newer usher may have written it)",
			e.Seq, h.Writer, h.Version, e.Target, blockVersion)
		return b
	}
	b.Version, b.Process, b.Number, b.Prev, b.Lost, b.End, b.Key = h.Version, h.Process, h.Number, h.Prev, h.Lost, h.End, h.Key
	records, err := h.records(rest)
	if err != nil {
		b.Problem = fmt.Errorf("entry %d of the audit log cannot be read: %w", e.Seq, err)
		return b
	}
	b.Records = records
	return b
}

// records reads what follows the header.
func (h blockHeader) records(rest []byte) ([]Record, error) {
	if h.Version > blockVersionLines {
		return unpackRecords(rest, h.Count)
	}
	var records []Record
	for line := range bytes.Lines(rest) {
		var a Record
		if err := json.Unmarshal(line, &a); err != nil {
			return nil, err
		}
		records = append(records, a)
	}
	if len(records) != h.Count {
		return nil, fmt.Errorf("it holds %d records and says %d", len(records), h.Count)
	}
	return records, nil
}

// auditPage is how many entries are read at once.
const auditPage = 200

// Blocks reads the log from the oldest block on, beginning after the entry with
// the number after. A block that was written twice because the store's answer got
// lost comes twice.
func Blocks(ctx context.Context, s vault.Audits, after int64) iter.Seq2[Block, error] {
	return func(yield func(Block, error) bool) {
		for {
			page, err := s.Audit(ctx, vault.AuditQuery{After: after, Limit: auditPage, Oldest: true})
			if err != nil {
				yield(Block{}, err)
				return
			}
			for _, e := range page {
				after = e.Seq
				if e.Action == blockAction && !yield(readBlock(e), nil) {
					return
				}
			}
			if len(page) < auditPage {
				return
			}
		}
	}
}

// LastBlocks reads the newest blocks, at most n, oldest first.
func LastBlocks(ctx context.Context, s vault.Audits, n int) ([]Block, error) {
	entries, err := s.Audit(ctx, vault.AuditQuery{Limit: n})
	var out []Block
	for _, e := range entries {
		if e.Action == blockAction {
			out = append(out, readBlock(e))
		}
	}
	return out, err
}
