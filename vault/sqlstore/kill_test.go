package sqlstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/usher-mcp/usher/vault/keys"
)

// A process killed at any instant of saving a sealed login leaves the old or the
// new one.
func TestKilledSaver(t *testing.T) {
	path := tempStore(t)
	furnished(t, path)
	last := 1
	n := kills(40)
	for i := range n {
		cmd, out, begin := child(t, "save", path)
		begin()
		// Every other one is killed while it opens or saves for the first time.
		within, said := 60*time.Millisecond, ""
		if i%2 == 0 {
			within = 10 * time.Millisecond
			if !out.Scan() {
				t.Fatal("the child saved nothing")
			}
			said = out.Text() + "\n"
		}
		timer := time.AfterFunc(rand.N(within), func() { _ = cmd.Process.Kill() })
		for out.Scan() {
			said += out.Text() + "\n"
		}
		timer.Stop()
		_ = cmd.Wait() // it was killed
		saved, gaveUp := lastSaid(t, said, last)
		if gaveUp != "" {
			t.Fatalf("the child gave up: %s", gaveUp)
		}
		last = checkSaved(t, path, saved, true)
	}
	t.Logf("%d kills, %d logins saved, none lost", n, last)
}

// childRotate changes the keys over and over.
func childRotate(ctx context.Context, s *Store) error {
	key := filepath.Join(filepath.Dir(s.path), "usher.key")
	for {
		done, err := keys.New(s, keys.Options{Setting: "file:" + key}).Rotate(ctx, "")
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stdout, "rotated", done.Resealed, done.Resumed)
	}
}

// A rotation of the keys that is killed at any instant loses nothing, and the next
// one goes on.
func TestKilledRotation(t *testing.T) {
	path := tempStore(t)
	furnished(t, path)
	last, rotations := 1, 0
	n := kills(12)
	for range n {
		cmd, out, begin := child(t, "rotate", path)
		begin()
		timer := time.AfterFunc(rand.N(150*time.Millisecond), func() { _ = cmd.Process.Kill() })
		for out.Scan() {
			rotations++
		}
		timer.Stop()
		_ = cmd.Wait() // it was killed
		last = checkSaved(t, path, last, true)
		s, err := Open(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		damage(t, s, `UPDATE usher_leases SET expires = 0`) // nobody waits for the dead one's lease
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := openPath(t, path)
	keys := keys.New(s, keys.Options{Setting: "file:" + filepath.Join(filepath.Dir(path), "usher.key")})
	if _, err := keys.Rotate(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if status, err := keys.Status(t.Context()); err != nil || status.Unfinished() {
		t.Errorf("afterwards %+v, %v", status, err)
	}
	checkSaved(t, path, last, true)
	t.Logf("%d kills of rotations, of which %d had been finished", n, rotations)
}
