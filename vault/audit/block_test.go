package audit_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/audit"
)

const (
	oldWriter = "D4KGNOM7YDQ337OUDNH4IB67SS"
	oldHash1  = "10258bea08f15766fff7f00a11893078c3731f35630e38543f87e124d715a96c"
	oldHash2  = "ee9962fb3ef15322238ee2ee6949215d4784049cf3706c66c76d41f030ce6c2d"

	oldHead1 = `{"v":1,"writer":"D4KGNOM7YDQ337OUDNH4IB67SS","process":"vm:16100","block":1,"count":2}`
	oldActs1 = `{"at":"2026-11-02T08:30:15.120345678Z","principal":"local","server":"github","account":"work","method":"tools/call","target":"search_code","arguments_sha256":"5f4fe62c9103231e7559ef5c6c26e6c89312f82e3e9c4b3e59ff92cd0cce7539","outcome":"ok","took_us":41250,"bytes":2048}
{"at":"2026-11-02T08:30:16.620345678Z","principal":"ci","server":"files","method":"resources/read","target":"file:///notes/日本 \"a\"\n�.md","outcome":"denied","took_us":90,"bytes":0}
`
	oldHead2 = `{"v":1,"writer":"D4KGNOM7YDQ337OUDNH4IB67SS","process":"vm:16100","block":2,"prev":"10258bea08f15766fff7f00a11893078c3731f35630e38543f87e124d715a96c","count":1,"end":true}`
	oldActs2 = `{"at":"2026-11-02T08:30:18.120345678Z","principal":"local","server":"github","method":"tools/call","target":"create_issue","arguments_sha256":"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","outcome":"tool_error","took_us":1000000,"bytes":77}
`
)

// oldChain is a chain as version 1 wrote it.
func oldChain() []vault.AuditEntry {
	return []vault.AuditEntry{
		{Seq: 1, Action: "acts", Target: oldWriter, Outcome: oldHash1, Detail: []byte(oldHead1 + "\n" + oldActs1)},
		{Seq: 2, Action: "acts", Target: oldWriter, Outcome: oldHash2, Detail: []byte(oldHead2 + "\n" + oldActs2)},
	}
}

// shown are all records as JSON, one a line.
func shown(t *testing.T, blocks []audit.Block) string {
	t.Helper()
	var b strings.Builder
	for _, block := range blocks {
		for _, a := range block.Records {
			line, err := a.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			b.Write(append(line, '\n'))
		}
	}
	return b.String()
}

func verified(t *testing.T, entries []vault.AuditEntry) audit.Chain {
	t.Helper()
	chains, err := audit.Verify(t.Context(), forged{entries: entries}, nil, nil, time.Time{})
	if err != nil || len(chains) != 1 {
		t.Fatalf("%+v, %v", chains, err)
	}
	return chains[0]
}

func TestBlocksOfVersion1(t *testing.T) {
	old := oldChain()
	if c := verified(t, old); c.Problems != nil || !c.Closed || c.Records != 3 || c.Hash != oldHash2 {
		t.Errorf("chain %+v", c)
	}
	if diff := cmp.Diff(oldActs1+oldActs2, shown(t, readAll(t, forged{entries: old}))); diff != "" {
		t.Errorf("a record (-want +got):\n%s", diff)
	}
	old[0].Detail = bytes.Replace(old[0].Detail, []byte("denied"), []byte("ok"), 1)
	if c := verified(t, old); len(c.Problems) == 0 {
		t.Error("a changed block of version 1 passes")
	}
}

// packed writes records with a log of today and returns its one block.
func packed(t testing.TB, records ...audit.Record) vault.AuditEntry {
	t.Helper()
	s := vault.NewMemory()
	tr := audit.NewLog(s, &audit.Options{Batch: len(records) + 1, Every: time.Hour}) // all of them wait for Close
	for _, a := range records {
		tr.Add(a)
	}
	tr.Close()
	entries, err := s.Audit(context.Background(), vault.AuditQuery{Oldest: true})
	if err != nil || len(entries) != 1 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	return entries[0]
}

// What version 1 showed, version 2 shows byte for byte, also in the same chain.
func TestBlocksOfBothVersions(t *testing.T) {
	var records []audit.Record
	for line := range strings.Lines(oldActs1 + oldActs2) {
		var a audit.Record
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatal(err)
		}
		a.Target = strings.Replace(a.Target, "\uFFFD", "\xff", 1) // as it came, before version 1 wrote it
		records = append(records, a)
	}
	_, body, _ := bytes.Cut(packed(t, records...).Detail, []byte("\n"))
	head := strings.Replace(strings.Replace(oldHead2, `"v":1`, `"v":2`, 1), `"count":1`, `"count":3`, 1)
	e := vault.AuditEntry{Seq: 2, Action: "acts", Target: oldWriter, Detail: append([]byte(head+"\n"), body...)}
	e.Outcome = hashOf(e.Detail)
	mixed := []vault.AuditEntry{oldChain()[0], e}
	if c := verified(t, mixed); c.Problems != nil || !c.Closed || c.Records != 5 {
		t.Errorf("chain %+v", c)
	}
	if diff := cmp.Diff(oldActs1+oldActs1+oldActs2, shown(t, readAll(t, forged{entries: mixed}))); diff != "" {
		t.Errorf("a record (-want +got):\n%s", diff)
	}
	if got := readAll(t, forged{entries: mixed})[1].Records[1].Target; !strings.HasSuffix(got, "\uFFFD.md") {
		t.Errorf("target %q, version 1 would have read it as text", got)
	}
	for i := range body { // the hash covers every byte
		forgery := e
		forgery.Detail = bytes.Clone(e.Detail)
		forgery.Detail[len(head)+1+i] ^= 1
		if c := verified(t, []vault.AuditEntry{mixed[0], forgery}); len(c.Problems) == 0 {
			t.Fatalf("byte %d can be changed", i)
		}
	}
}

func TestPackedActsAreSmallAndWhole(t *testing.T) {
	at := time.Date(2026, 11, 2, 23, 59, 59, 999_950_000, time.UTC)
	want := []audit.Record{{}, {At: at.Add(-time.Hour), Took: -time.Millisecond, Bytes: -1}}
	for i := range 500 {
		a := record(fmt.Sprint("tool", i%40))
		a.At, a.Arguments[0], a.Bytes = at.Add(time.Duration(i)*100*time.Microsecond), byte(i), i*100
		want = append(want, a)
	}
	e := packed(t, want...)
	got := readAll(t, forged{entries: []vault.AuditEntry{e}})
	if diff := cmp.Diff(want, got[0].Records); diff != "" || got[0].Version != 2 {
		t.Errorf("version %d (-want +got):\n%s", got[0].Version, diff)
	}
	if n := len(e.Detail) / len(want); n > 50 {
		t.Errorf("%d bytes a record", n)
	}
}

// foreign is a block of version 2 whose hash is right and whose records may be anything.
func foreign(count int64, body []byte) vault.AuditEntry {
	detail := append(fmt.Appendf(nil, `{"v":2,"writer":"w","block":1,"count":%d}`+"\n", count), body...)
	return vault.AuditEntry{Seq: 1, Action: "acts", Target: "w", Outcome: hashOf(detail), Detail: detail}
}

func TestPackedActsThatCannotBeRead(t *testing.T) {
	_, whole, _ := bytes.Cut(packed(t, record("a")).Detail, []byte("\n"))
	rest := make([]byte, 20)
	time64 := func(sec, nsec int64) []byte {
		return append(binary.AppendVarint(binary.AppendVarint(nil, sec), nsec), rest...)
	}
	tests := []struct {
		name  string
		count int64
		body  []byte
		want  string
	}{
		{"more records than bytes", 1 << 40, whole, "it says that it holds"},
		{"fewer than none", -1, whole, "it says that it holds"},
		{"one too few", 0, whole, "bytes follow its last record"},
		{"cut", 1, whole[:len(whole)-3], "it ends too early"},
		{"a word longer than all", 1, append([]byte{0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x7f}, rest...), "it ends too early"},
		{"an unknown word", 1, append([]byte{0, 0, 1}, rest...), "did not come before"},
		{"a year that JSON cannot hold", 1, time64(1<<60, 0), "its time is none"},
		{"nanoseconds of more than a second", 1, time64(0, 1e9), "its time is none"},
		{"no marker", 1, append([]byte{0, 0, 0, 0, 1, 1, 1, 1, 1, 9}, rest...), "neither there nor missing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := verified(t, []vault.AuditEntry{foreign(tt.count, tt.body)})
			if got := strings.Join(c.Problems, "; "); !strings.Contains(got, tt.want) {
				t.Errorf("problems %q, want %q", got, tt.want)
			}
		})
	}
}

func FuzzPackedActs(f *testing.F) {
	_, body, _ := bytes.Cut(packed(f, record("a"), record("b")).Detail, []byte("\n"))
	f.Add(int64(2), body)
	f.Add(int64(1<<40), body)
	f.Fuzz(func(t *testing.T, count int64, body []byte) {
		for b, err := range audit.Blocks(t.Context(), forged{entries: []vault.AuditEntry{foreign(count, body)}}, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if b.Problem == nil && int64(len(b.Records)) != count {
				t.Fatalf("%d records, want %d", len(b.Records), count)
			}
			for _, a := range b.Records {
				if line, err := json.Marshal(a); err != nil || json.Unmarshal(line, new(audit.Record)) != nil {
					t.Fatalf("%+v cannot be shown: %s, %v", a, line, err)
				}
			}
		}
	})
}

// slow is a store that takes its time.
type slow struct{ *vault.Memory }

func (s slow) Append(ctx context.Context, entries ...vault.AuditEntry) error {
	time.Sleep(10 * time.Millisecond)
	return s.Memory.Append(ctx, entries...)
}

func TestLogFillsBlocksUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := slow{vault.NewMemory()}
		tr := audit.NewLog(s, &audit.Options{Batch: 50})
		for range 1000 {
			tr.Add(record("a"))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		if st := tr.Stats(); st.Written != 1000 {
			t.Errorf("stats %+v: what does not fill a block waits for ever", st)
		}
		tr.Close()
		if n := len(readAll(t, s)); n > 24 {
			t.Errorf("%d blocks for 1000 records in batches of 50", n)
		}
	})
}

func TestLogWritesWhatFillsNoBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := audit.NewLog(vault.NewMemory(), &audit.Options{Batch: 50})
		defer tr.Close()
		for range 60 {
			tr.Add(record("a"))
		}
		time.Sleep(1100 * time.Millisecond)
		if st := tr.Stats(); st.Written != 60 {
			t.Errorf("stats %+v after a second", st)
		}
	})
}
