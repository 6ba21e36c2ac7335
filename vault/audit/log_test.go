package audit_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/audit"
)

func record(target string) audit.Record {
	return audit.Record{
		At: time.Now().UTC(), Principal: "local", Server: "math", Method: "tools/call", Target: target,
		Arguments: [32]byte{1, 2, 3}, Outcome: "ok", Took: 1500 * time.Microsecond, Bytes: 7,
	}
}

func readAll(t *testing.T, s vault.Audits) (blocks []audit.Block) {
	t.Helper()
	for b, err := range audit.Blocks(t.Context(), s, 0) {
		if err != nil || b.Problem != nil {
			t.Fatal(err, b.Problem)
		}
		blocks = append(blocks, b)
	}
	return blocks
}

func targets(blocks []audit.Block) (out []string) {
	for _, b := range blocks {
		for _, a := range b.Records {
			out = append(out, a.Target)
		}
	}
	return out
}

func TestLogBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := vault.NewMemory()
		tr := audit.NewLog(s, &audit.Options{Batch: 3})
		defer tr.Close()
		want := []audit.Record{record("a"), record("b")}
		for _, a := range want {
			tr.Add(a)
		}
		synctest.Wait()
		if n := len(readAll(t, s)); n != 0 {
			t.Fatalf("%d blocks before the second has passed; each act would cost a write", n)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		blocks := readAll(t, s)
		if len(blocks) != 1 {
			t.Fatalf("%d blocks, want one", len(blocks))
		}
		if diff := cmp.Diff(want, blocks[0].Records); diff != "" {
			t.Errorf("a record (-want +got):\n%s", diff)
		}
		for range 3 {
			tr.Add(record("c"))
		}
		synctest.Wait()
		if n := len(readAll(t, s)); n != 2 {
			t.Errorf("%d blocks; a full batch does not wait", n)
		}
		if st := tr.Stats(); st != (audit.Stats{Written: 5}) {
			t.Errorf("stats %+v", st)
		}
	})
}

func TestLogEnds(t *testing.T) {
	s := vault.NewMemory()
	audit.NewLog(s, nil).Close()
	if n := len(readAll(t, s)); n != 0 {
		t.Errorf("an unused log left %d blocks", n)
	}
	tr := audit.NewLog(s, &audit.Options{Every: time.Hour})
	tr.Add(record("a"))
	tr.Close()
	tr.Add(record("late"))
	tr.Close()
	blocks := readAll(t, s)
	if diff := cmp.Diff([]string{"a"}, targets(blocks)); diff != "" || len(blocks) != 1 || !blocks[0].End {
		t.Errorf("blocks %+v (-want +got):\n%s", blocks, diff)
	}
}

// away is a store that cannot be written for a while, and whose answers may be lost.
type away struct {
	*vault.Memory
	down, forgetful atomic.Bool
}

func (s *away) Append(ctx context.Context, entries ...vault.AuditEntry) error {
	if s.down.Load() {
		return vault.ErrUnavailable
	}
	err := s.Memory.Append(ctx, entries...)
	if s.forgetful.Swap(false) {
		return errors.Join(vault.ErrUnavailable, err)
	}
	return err
}

func TestLogWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &away{Memory: vault.NewMemory()}
		s.down.Store(true)
		tr := audit.NewLog(s, &audit.Options{Room: 4, Batch: 2})
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			tr.Add(record(name))
		}
		time.Sleep(time.Minute)
		s.down.Store(false)
		s.forgetful.Store(true)
		time.Sleep(time.Minute)
		tr.Add(record("g"))
		tr.Close()
		chains, err := audit.Verify(t.Context(), s, nil, nil, time.Time{})
		if err != nil || len(chains) != 1 || len(chains[0].Problems) > 0 || !chains[0].Closed {
			t.Fatalf("verify: %+v, %v; a block that was written twice is no problem", chains, err)
		}
		if c := chains[0]; c.Lost != 2 || c.Records != 5 || tr.Stats().Lost != 2 {
			t.Errorf("%d lost and %d kept of 7; two were too many", c.Lost, c.Records)
		}
		if diff := cmp.Diff([]string{"a", "b", "a", "b", "c", "d", "g"}, targets(readAll(t, s))); diff != "" {
			t.Errorf("the block whose answer got lost comes twice (-want +got):\n%s", diff)
		}
	})
}

func TestLogForgetsWhatIsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := vault.NewMemory()
		tr := audit.NewLog(s, &audit.Options{Keep: 24 * time.Hour})
		defer tr.Close()
		for range 30 {
			tr.Add(record("a"))
			time.Sleep(time.Hour)
		}
		synctest.Wait()
		if n := len(readAll(t, s)); n < 23 || n > 26 {
			t.Errorf("%d blocks of 30, want those of one day", n)
		}
		chains, err := audit.Verify(t.Context(), s, nil, nil, time.Time{})
		if err != nil || len(chains) != 1 || len(chains[0].Problems) > 0 || chains[0].First == 1 {
			t.Errorf("verify: %+v, %v; what was trimmed is no problem", chains, err)
		}
	})
}

// forged is a log whose entries somebody changed.
type forged struct {
	vault.Audits
	entries []vault.AuditEntry
}

func (f forged) Audit(_ context.Context, q vault.AuditQuery) ([]vault.AuditEntry, error) {
	if q.After > 0 {
		return nil, nil
	}
	return f.entries, nil
}

func chainOf(t testing.TB, names ...string) []vault.AuditEntry {
	t.Helper()
	s := vault.NewMemory()
	tr := audit.NewLog(s, &audit.Options{Batch: 1})
	for _, name := range names {
		tr.Add(record(name))
	}
	tr.Close()
	entries, err := s.Audit(t.Context(), vault.AuditQuery{Oldest: true})
	if err != nil || len(entries) != len(names)+1 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	return entries
}

func TestVerify(t *testing.T) {
	own := chainOf(t, "a", "b", "c")
	other := chainOf(t, "x", "y", "z")
	head := audit.Head{Writer: own[2].Target, Last: 3, Hash: own[2].Outcome, To: time.Now()}
	edit := func(i int, from, to string) func([]vault.AuditEntry) []vault.AuditEntry {
		return func(e []vault.AuditEntry) []vault.AuditEntry {
			e[i].Detail = []byte(strings.Replace(string(e[i].Detail), from, to, 1))
			return e
		}
	}
	tests := []struct {
		name  string
		forge func([]vault.AuditEntry) []vault.AuditEntry
		want  string // part of the problem; empty for none
	}{
		{"as written", nil, ""},
		{"two chains", func(e []vault.AuditEntry) []vault.AuditEntry {
			return []vault.AuditEntry{e[0], other[0], e[1], other[1], e[2], other[2], other[3], e[3]}
		}, ""},
		{"a record changed", edit(1, "\x02ok", "\x02no"), "was changed after it was written"},
		{"a block moved to another chain", func(e []vault.AuditEntry) []vault.AuditEntry {
			e[1].Target = other[1].Target
			return e
		}, "is of chain"},
		{"a block left out", func(e []vault.AuditEntry) []vault.AuditEntry { return slices.Delete(e, 1, 2) }, "what stood between is gone"},
		{"a block of another run", func(e []vault.AuditEntry) []vault.AuditEntry {
			b := other[1]
			b.Detail = []byte(strings.Replace(string(b.Detail), b.Target, e[1].Target, 1))
			b.Target = e[1].Target
			b.Outcome = hashOf(b.Detail)
			e[1] = b
			return e
		}, "does not follow block 1"},
		{"the end cut off", func(e []vault.AuditEntry) []vault.AuditEntry { return e[:2] }, "the end is gone"},
		{"all gone", func([]vault.AuditEntry) []vault.AuditEntry { return nil }, "the whole chain is gone"},
		{"something after the end", func(e []vault.AuditEntry) []vault.AuditEntry {
			b := e[1]
			b.Seq = 99
			return append(e, b)
		}, "after the end"},
		{"the beginning trimmed", func(e []vault.AuditEntry) []vault.AuditEntry { return e[1:] }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			entries := slices.Clone(own)
			if tt.forge != nil {
				entries = tt.forge(entries)
			}
			chains, err := audit.Verify(t.Context(), forged{entries: entries}, nil, []audit.Head{head}, time.Time{})
			var problems []string
			for _, c := range chains {
				problems = append(problems, c.Problems...)
			}
			got := strings.Join(problems, "; ")
			if err != nil || (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("problems %q, %v; want %q", got, err, tt.want)
			}
		})
	}
	if chains, err := audit.Verify(t.Context(), forged{}, nil, []audit.Head{head}, time.Now().Add(time.Hour)); err != nil || len(chains) > 0 {
		t.Errorf("a chain that was too old to be kept: %+v, %v", chains, err)
	}
}

func TestActKeepsItsWords(t *testing.T) {
	a := record(`say "hi"\ and 日本`)
	a.Account, a.Arguments = "work", [32]byte{}
	line, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	var back audit.Record
	if err := json.Unmarshal(line, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, back); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzBlock(f *testing.F) {
	for _, e := range chainOf(f, "a") {
		f.Add(e.Detail)
	}
	f.Add([]byte("{}\n{}\n"))
	f.Add([]byte(`{"v":1,"count":1}` + "\n" + `{"arguments_sha256":"zz"}`))
	f.Fuzz(func(t *testing.T, detail []byte) {
		e := vault.AuditEntry{Seq: 1, Action: "acts", Outcome: hashOf(detail), Detail: detail}
		if _, err := audit.Verify(t.Context(), forged{entries: []vault.AuditEntry{e}}, nil, nil, time.Time{}); err != nil {
			t.Error(err)
		}
	})
}

// nowhere takes entries and forgets them.
type nowhere struct{ vault.Audits }

func (nowhere) Append(context.Context, ...vault.AuditEntry) error { return nil }

// BenchmarkLog is what a record costs up to the store, all goroutines together.
func BenchmarkLog(b *testing.B) {
	tr := audit.NewLog(nowhere{}, &audit.Options{Room: 1 << 30})
	defer tr.Close()
	a := record("a")
	b.ReportAllocs()
	for b.Loop() {
		tr.Add(a)
	}
}

func hashOf(detail []byte) string {
	sum := sha256.Sum256(detail)
	return hex.EncodeToString(sum[:])
}
