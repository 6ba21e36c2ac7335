//go:build unix

package sqlstore

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/audit"
)

// telling is a store that says when it has taken something.
type telling struct {
	vault.Audits
	done chan struct{}
}

func (s telling) Append(ctx context.Context, entries ...vault.AuditEntry) error {
	err := s.Audits.Append(ctx, entries...)
	select {
	case s.done <- struct{}{}:
	default:
	}
	return err
}

// BenchmarkTrail is what an act costs from being added to lying on the disk: ns/op
// with the disk's own time, cpu-ns/act without it.
func BenchmarkTrail(b *testing.B) {
	s, err := Open(b.Context(), filepath.Join(b.TempDir(), "usher.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }() // only measured
	acts := make([]audit.Record, 4096)
	for i := range acts {
		acts[i] = audit.Record{
			Principal: "local", Server: fmt.Sprintf("server-%d", i%20), Method: "tools/call",
			Target: fmt.Sprintf("tool_%d", i%97), Arguments: sha256.Sum256([]byte{byte(i), byte(i >> 8)}), Outcome: "ok",
			Took: time.Duration(i) * time.Microsecond, Bytes: 200 + i%5000,
		}
	}
	told := telling{s, make(chan struct{}, 1)}
	tr := audit.NewLog(told, &audit.Options{Room: 1 << 30})
	at, n := time.Now(), 0
	b.ReportAllocs()
	before := cpuTime(b)
	for b.Loop() {
		a := &acts[n%len(acts)]
		n++
		a.At = at.Add(time.Duration(n) * 100 * time.Microsecond)
		tr.Add(*a)
		if n%audit.DefaultBatch == 0 {
			<-told.done // as fast as the store takes them, not faster
		}
	}
	tr.Close()
	b.ReportMetric(float64(cpuTime(b)-before)/float64(n), "cpu-ns/act")
	var size int64
	if err := s.db.QueryRowContext(b.Context(), `SELECT sum(length(detail)) FROM usher_audit`).Scan(&size); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(size)/float64(n), "bytes/act")
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
