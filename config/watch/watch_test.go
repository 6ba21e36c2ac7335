package watch

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A change is reported once, after the file has settled; so is a removal.
func TestFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a")
		ctx, stop := context.WithCancel(t.Context())
		var changes atomic.Int32
		done := make(chan struct{})
		go func() {
			defer close(done)
			Files(ctx, func() []string { return []string{path} }, func() { changes.Add(1) })
		}()
		expect := func(want int32) {
			t.Helper()
			time.Sleep(Every + Quiet + time.Millisecond)
			synctest.Wait()
			if got := changes.Load(); got != want {
				t.Fatalf("%d changes, want %d", got, want)
			}
		}
		expect(0)
		if err := os.WriteFile(path, []byte("1"), 0o600); err != nil {
			t.Fatal(err)
		}
		expect(1)
		expect(1)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		expect(2)
		stop()
		<-done
	})
}
