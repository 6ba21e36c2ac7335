package process

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Reap is careful with what it does not know.
func TestReapSpares(t *testing.T) {
	bystander := exec.Command("sleep", "300")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer bystander.Wait()
	defer bystander.Process.Kill()
	pid := bystander.Process.Pid
	old := time.Now().Add(-time.Hour)
	tests := []struct {
		name   string
		record any
		age    time.Time
		kept   bool
	}{
		{"another process has the pid", record{Pid: pid, Start: startTime(pid) + 1, Owner: 1 << 30, OwnerStart: 1, Boot: bootID()}, time.Time{}, false},
		{"before the last boot", record{Pid: pid, Start: startTime(pid), Owner: 1 << 30, OwnerStart: 1, Boot: "other"}, time.Time{}, false},
		{"the host lives", record{Pid: pid, Start: startTime(pid), Owner: os.Getpid(), OwnerStart: startTime(os.Getpid()), Boot: bootID()}, old, true},
		{"nothing known", record{Owner: 1 << 30, OwnerStart: 1, Boot: bootID()}, time.Time{}, false},
		{"garbage, old", "no record", old, false},
		{"garbage, maybe being written", "no record", time.Time{}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "x.json")
			b, err := json.Marshal(tt.record)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if !tt.age.IsZero() {
				if err := os.Chtimes(path, tt.age, tt.age); err != nil {
					t.Fatal(err)
				}
			}
			if n, err := Reap(t.Context(), dir); n != 0 || err != nil {
				t.Errorf("Reap = %d, %v", n, err)
			}
			if !exists(pid) {
				t.Fatal("the bystander is dead")
			}
			if _, err := os.Stat(path); (err == nil) != tt.kept {
				t.Errorf("record kept: %v, want %v", err == nil, tt.kept)
			}
		})
	}
	if n, err := Reap(t.Context(), filepath.Join(t.TempDir(), "none")); n != 0 || err != nil {
		t.Errorf("Reap of no directory = %d, %v", n, err)
	}
}
