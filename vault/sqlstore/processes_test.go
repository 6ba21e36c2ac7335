package sqlstore

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/test/need"
	"github.com/usher-mcp/usher/vault"
)

// childMode makes the test binary do one of the jobs below and not run tests.
const (
	childMode   = "USHER_SQLSTORE_CHILD"
	childStore  = "USHER_SQLSTORE_SOURCE"
	childCanary = "USHER_SQLSTORE_CANARY"
)

// child starts the test binary again. Its standard input is closed when the
// returned function is called, which is when it begins.
func child(t *testing.T, job, path string) (cmd *exec.Cmd, out *bufio.Scanner, begin func()) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), childMode+"="+job, childStore+"="+path,
		"GORACE=atexit_sleep_ms=0") // else each child takes a second to end under -race
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(stdout), func() { _ = in.Close() }
}

// runChild is the other side of child: it returns the exit code.
func runChild(job string) int {
	jobs := map[string]func(context.Context, *Store) error{
		"hammer": hammer, "write": writeForEver, "hold": holdForEver, "put": putOnce,
		"rotate": childRotate,
	}
	ctx := context.Background()
	if job == "readonly" {
		return childReadOnly(ctx)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	if job == "save" {
		return childSave(ctx)
	}
	s, err := Open(ctx, os.Getenv(childStore), nil)
	if err == nil {
		err = errors.Join(jobs[job](ctx, s), s.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, job+":", err)
		return 1
	}
	return 0
}

const (
	hammers    = 3
	hammerings = 8
)

func counterKey() vault.Key { return vault.LocalKey("test", "counter") }
func fencedKey() vault.Key  { return vault.LocalKey("test", "fenced") }

// hammer changes one record, one counter and one leased record as fast as it
// can, and fails if it meets anybody else inside the lease.
func hammer(ctx context.Context, s *Store) error {
	increment := func(old []byte) ([]byte, error) {
		n, _ := strconv.Atoi(string(old)) // nothing is 0
		return strconv.AppendInt(nil, int64(n+1), 10), nil
	}
	canary := os.Getenv(childCanary)
	for range hammerings {
		if _, err := vault.Update(ctx, s, counterKey(), increment); err != nil {
			return err
		}
		if _, err := s.Add(ctx, counterKey(), 1); err != nil {
			return err
		}
		err := vault.Hold(ctx, s, "hammer", time.Minute, func(ctx context.Context, l vault.Lease) error {
			f, err := os.OpenFile(canary, os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return fmt.Errorf("somebody else is inside: %w", err)
			}
			_ = f.Close() // empty
			old, err := s.Get(ctx, fencedKey())
			if err != nil && !errors.Is(err, vault.ErrNotFound) {
				return err
			}
			data, _ := increment(old.Data) // never fails
			// Under the lease nobody else writes: a conflict is a failure here.
			_, err = s.PutFenced(ctx, fencedKey(), data, old.Version, l)
			return errors.Join(err, os.Remove(canary))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Several processes that all find no file make one, and then lose no update.
func TestProcessesShareAFile(t *testing.T) { shareBetweenProcesses(t, tempStore(t)) }

func shareBetweenProcesses(t *testing.T, path string) {
	t.Setenv(childCanary, filepath.Join(t.TempDir(), "canary"))
	var cmds []*exec.Cmd
	var begins []func()
	for range hammers {
		cmd, _, begin := child(t, "hammer", path)
		cmds, begins = append(cmds, cmd), append(begins, begin)
	}
	for _, begin := range begins {
		begin()
	}
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Errorf("child: %v", err)
		}
	}
	s := openPath(t, path)
	want := strconv.Itoa(hammers * hammerings)
	for _, key := range []vault.Key{counterKey(), fencedKey()} {
		if rec, err := s.Get(t.Context(), key); err != nil || string(rec.Data) != want {
			t.Errorf("%s = %s, %v; want %s", key, rec.Data, err, want)
		}
	}
	if n, err := s.Add(t.Context(), counterKey(), 0); err != nil || strconv.FormatInt(n, 10) != want {
		t.Errorf("the counter is %d, %v; want %s", n, err, want)
	}
}

// body is data for the n-th write that shows when it is torn.
func body(n int) []byte { return bytes.Repeat([]byte(strconv.Itoa(n)+" "), 700) }

// writeForEver replaces a record over and over and says so after each commit.
func writeForEver(ctx context.Context, s *Store) error {
	rec, err := s.Get(ctx, counterKey())
	if err != nil && !errors.Is(err, vault.ErrNotFound) {
		return err
	}
	n := 0
	if err == nil {
		if _, err := fmt.Sscan(string(rec.Data), &n); err != nil {
			return err
		}
	}
	for {
		n++
		if rec, err = s.Put(ctx, counterKey(), body(n), rec.Version); err != nil {
			return err
		}
		fmt.Fprintln(os.Stdout, n)
	}
}

// A writer killed at any instant leaves the old or the new value.
func TestKilledWriter(t *testing.T) {
	path := tempStore(t)
	last := 0
	for i := range kills(30) {
		cmd, out, begin := child(t, "write", path)
		begin()
		// Every other one is killed while it opens or writes for the first time.
		within := 60 * time.Millisecond
		if i%2 == 0 {
			within = 8 * time.Millisecond
			if !out.Scan() {
				t.Fatal("the writer wrote nothing")
			}
			last = mustAtoi(t, out.Text())
		}
		timer := time.AfterFunc(rand.N(within), func() { _ = cmd.Process.Kill() })
		for out.Scan() {
			last = mustAtoi(t, out.Text())
		}
		timer.Stop()
		_ = cmd.Wait() // it was killed
		last = checkSurvivor(t, path, last)
	}
	t.Logf("%d writes survived", last)
}

func mustAtoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// checkSurvivor opens the store as the next process would and returns the value
// found: the acknowledged one or the one being written.
func checkSurvivor(t *testing.T, path string, acknowledged int) int {
	t.Helper()
	s, err := Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }() // only read from
	rec, err := s.Get(t.Context(), counterKey())
	if err != nil {
		t.Fatalf("neither the old nor the new value: %v", err)
	}
	for _, n := range []int{acknowledged, acknowledged + 1} {
		if bytes.Equal(rec.Data, body(n)) {
			return n
		}
	}
	t.Fatalf("after %d was acknowledged the record starts with %.20q", acknowledged, rec.Data)
	return 0
}

// kills is n, or as many as a proof takes.
func kills(n int) int {
	if need.Proof() {
		return 1000
	}
	return n
}

func holdForEver(ctx context.Context, s *Store) error {
	l, err := s.Lease(ctx, "held", 300*time.Millisecond)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, l.Holder, l.Epoch)
	select {} // until killed
}

// A dead holder's lease is free once its time is over, and its writes are fenced.
func TestKilledHolder(t *testing.T) {
	path := tempStore(t)
	cmd, out, begin := child(t, "hold", path)
	begin()
	if !out.Scan() {
		t.Fatal("the child got no lease")
	}
	dead := vault.Lease{Name: "held"}
	if _, err := fmt.Sscan(out.Text(), &dead.Holder, &dead.Epoch); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
	s := openPath(t, path)
	l, err := vault.Acquire(t.Context(), s, "held", time.Minute)
	if err != nil || l.Epoch <= dead.Epoch {
		t.Fatalf("Acquire = %+v, %v; want an epoch above %d", l, err, dead.Epoch)
	}
	if _, err := s.PutFenced(t.Context(), fencedKey(), nil, 0, dead); !errors.Is(err, vault.ErrFenced) {
		t.Errorf("a write of the dead holder: %v, want ErrFenced", err)
	}
}

func putOnce(ctx context.Context, s *Store) error {
	rec, err := s.Put(ctx, counterKey(), []byte("x"), 0)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, rec.Version)
	_, err = s.Take(ctx, vault.LocalKey("test", "doomed"))
	return err
}

// What another process writes and removes is heard of here.
func TestWatchOtherProcess(t *testing.T) {
	path := tempStore(t)
	s := openPath(t, path)
	doomed := vault.LocalKey("test", "doomed")
	if _, err := s.Put(t.Context(), doomed, nil, 0); err != nil {
		t.Fatal(err)
	}
	sub, err := s.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	cmd, out, begin := child(t, "put", path)
	begin()
	if !out.Scan() {
		t.Fatal("the child wrote nothing")
	}
	version, err := strconv.ParseInt(out.Text(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	want := map[vault.Change]bool{{Key: counterKey(), Version: version}: true, {Key: doomed}: true}
	for len(want) > 0 {
		c := nextChange(t, sub)
		if !want[c] {
			t.Errorf("told of %+v, which did not happen", c)
		}
		delete(want, c)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// The feed runs only while somebody listens, and again for the next one.
func TestWatchStopsAndStartsAgain(t *testing.T) {
	path := tempStore(t)
	s, other := openPath(t, path), openPath(t, path)
	for i := range 3 {
		sub, err := s.Watch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		key := vault.LocalKey("test", fmt.Sprint(i))
		if _, err := other.Put(t.Context(), key, nil, 0); err != nil {
			t.Fatal(err)
		}
		if c := nextChange(t, sub); c.Key != key {
			t.Errorf("round %d: told of %+v", i, c)
		}
		sub.Close()
		s.watch.feeds.Wait() // ends by itself
	}
}

func nextChange(t *testing.T, sub *event.Subscription[vault.Change]) vault.Change {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c, _, err := sub.Next(ctx)
	if err != nil {
		t.Fatalf("never told of the change: %v", err)
	}
	return c
}
