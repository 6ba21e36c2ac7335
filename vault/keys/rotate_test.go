package keys_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/keys"
)

// secretRecords are records of every kind that is sealed, one nobody knows among
// them.
func secretRecords() map[vault.Key]string {
	out := map[vault.Key]string{}
	for _, kind := range []string{vault.KindGrant, vault.KindClient, vault.KindPending, vault.KindSecret, "unheard of"} {
		for i := range 3 {
			key := vault.Key{Kind: kind, Principal: []string{vault.Local, "alice"}[i%2], Name: fmt.Sprint(i)}
			out[key] = "secret of " + key.String()
		}
	}
	return out
}

func fill(t *testing.T, s vault.Store) map[vault.Key]int64 {
	t.Helper()
	versions := map[vault.Key]int64{}
	for key, data := range secretRecords() {
		versions[key] = mustPut(t, s, key, data).Version
	}
	mustPut(t, s, vault.LocalKey(vault.KindPin, "p"), "plain")
	return versions
}

func checkAll(t *testing.T, s vault.Store, versions map[vault.Key]int64) {
	t.Helper()
	for key, data := range secretRecords() {
		if rec := mustGet(t, s, key, data); rec.Version != versions[key] {
			t.Errorf("%s has version %d, want %d: whoever is about to write it would be put off", key, rec.Version, versions[key])
		}
	}
	mustGet(t, s, vault.LocalKey(vault.KindPin, "p"), "plain")
}

func TestRotate(t *testing.T) {
	tests := []struct {
		name, setting, to string
		want              string // the place afterwards
		after             string // the setting that opens it then
		sameMaster        bool
		remark            string
	}{
		{name: "keychain", setting: "keychain", want: "keychain", after: "keychain"},
		{name: "auto keychain", setting: "auto", want: "keychain", after: "auto"},
		{name: "file in place", setting: "file:$DIR/k", want: "file:$DIR/k", after: "file:$DIR/k"},
		{name: "environment", setting: "env:A", want: "env:A", after: "env:A", sameMaster: true},
		{name: "passphrase", setting: "passphrase", want: "passphrase", after: "passphrase"},
		{name: "keychain to file", setting: "keychain", to: "file:$DIR/k", want: "file:$DIR/k", after: "file:$DIR/k"},
		{name: "file to keychain", setting: "file:$DIR/k", to: "keychain", want: "keychain", after: "auto", remark: "remove the file"},
		{name: "file to another file", setting: "file:$DIR/k", to: "file:$DIR/l", want: "file:$DIR/l", after: "file:$DIR/l", remark: "remove the file"},
		{name: "variable to variable", setting: "env:A", to: "env:B", want: "env:B", after: "env:B", remark: "remove the variable"},
		{name: "auto to passphrase", setting: "auto", to: "passphrase", want: "passphrase", after: "passphrase"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.env["A"], w.env["B"] = keyA, keyB
			w.phrases = []string{"correct horse", "correct horse", "correct horse", "correct horse"}
			dir := strings.NewReplacer("$DIR", w.dir)
			setting, to := dir.Replace(tt.setting), dir.Replace(tt.to)
			old := w.sealed(setting)
			versions := fill(t, old)
			before, err := w.keys(setting).Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			raw := rawData(t, w.store)
			got, err := w.keys(setting).Rotate(t.Context(), to)
			if err != nil {
				t.Fatal(err)
			}
			if got.Resealed != len(versions)+1 || // and the pin
				got.To != dir.Replace(tt.want) || len(got.Unopened) != 0 || got.Resumed {
				t.Errorf("Rotate = %+v", got)
			}
			if remarks := strings.Join(got.Remarks, "\n"); (tt.remark == "") != (remarks == "") || !strings.Contains(remarks, tt.remark) {
				t.Errorf("remarks %q, want %q", remarks, tt.remark)
			}
			for key, data := range rawData(t, w.store) {
				if key.Kind != vault.KindKey && data == raw[key] {
					t.Errorf("%s was not sealed anew", key)
				}
			}
			checkAll(t, w.sealed(dir.Replace(tt.after)), versions)
			status, err := w.keys(setting).Status(t.Context())
			if err != nil || len(status.Places) != 1 || (status.Places[0].ID == before.Places[0].ID) != tt.sameMaster {
				t.Errorf("afterwards %+v, %v; before %+v", status, err, before)
			}
			if tt.to == "" {
				checkAll(t, old, versions) // a process that was running goes on
			}
			if _, entries := w.keychain.count(); entries > 1 {
				t.Errorf("%d entries are left in the keychain", entries)
			}
		})
	}
}

func rawData(t *testing.T, s *vault.Memory) map[vault.Key]string {
	t.Helper()
	out := map[vault.Key]string{}
	kinds, err := s.Kinds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds {
		recs, err := s.List(t.Context(), kind, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range recs {
			out[rec.Key] = string(rec.Data)
		}
	}
	return out
}

// faulty is a store whose writes end at one point, as if the process had died.
type faulty struct {
	*vault.Memory
	left int // writes until the end
}

var errDied = errors.New("the process died")

func (f *faulty) step() error {
	if f.left--; f.left < 0 {
		return errDied
	}
	return nil
}

func (f *faulty) Put(ctx context.Context, key vault.Key, data []byte, v int64) (vault.Record, error) {
	if err := f.step(); err != nil {
		return vault.Record{}, err
	}
	return f.Memory.Put(ctx, key, data, v)
}

func (f *faulty) PutFenced(ctx context.Context, key vault.Key, data []byte, v int64, l vault.Lease) (vault.Record, error) {
	if err := f.step(); err != nil {
		return vault.Record{}, err
	}
	return f.Memory.PutFenced(ctx, key, data, v, l)
}

func (f *faulty) Rewrite(ctx context.Context, key vault.Key, data []byte, v int64, l vault.Lease) error {
	if err := f.step(); err != nil {
		return err
	}
	return f.Memory.Rewrite(ctx, key, data, v, l)
}

// A rotation that dies at any write leaves all records open, and the next one
// finishes it.
func TestRotateDiesAnywhere(t *testing.T) {
	for _, to := range []string{"", "keychain", "passphrase", "env:A"} {
		t.Run("to "+to, func(t *testing.T) {
			for left := 0; ; left++ {
				if diedAt(t, to, left) {
					continue
				}
				if left < 15 {
					t.Errorf("a rotation takes only %d writes; the test tests nothing", left)
				}
				return
			}
		})
	}
}

func diedAt(t *testing.T, to string, left int) (died bool) {
	t.Helper()
	w := newWorld(t)
	w.env["A"] = keyA
	w.phrases = []string{"correct horse", "correct horse", "correct horse"}
	setting := "file:" + w.stateFile()
	versions := fill(t, w.sealed(setting))
	opt := keys.Options{
		Setting: setting, Keychain: w.keychain, ScryptLog: 4, File: w.stateFile(),
		Env: func(name string) (string, bool) { return keyA, name == "A" },
		Passphrase: func(context.Context, keys.PassphraseQuestion) (vault.Secret, error) {
			return vault.NewSecret("correct horse"), nil
		},
	}
	_, err := keys.New(&faulty{w.store, left}, opt).Rotate(t.Context(), to)
	if err != nil && !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	died = err != nil
	check := setting
	if !died && to != "" {
		check = to
	}
	w.env["USHER_PASSPHRASE"] = "correct horse"
	checkAll(t, w.sealed(check), versions)
	k := w.keys(check)
	got, err := k.Rotate(t.Context(), to)
	if err != nil {
		t.Fatalf("%d writes, then again: %v", left, err)
	}
	if to != "" {
		check = to
	}
	checkAll(t, w.sealed(check), versions)
	status, err := k.Status(t.Context())
	if err != nil || status.Unfinished() || got.To != status.Places[0].Place {
		t.Errorf("after %d writes and another rotation: %+v, %v", left, status, err)
	}
	return died
}

// Writers that are at work during rotations lose nothing, whichever key their
// process knows.
func TestRotateUnderWriters(t *testing.T) {
	w := newWorld(t)
	setting := "auto"
	w.keychain.broken = errors.New("absent")
	stop := make(chan struct{})
	counts := make([]int, 3)
	var wg sync.WaitGroup
	for i := range counts {
		wg.Go(func() {
			s := w.sealed(setting)
			for {
				select {
				case <-stop:
					return
				default:
				}
				rec, err := vault.Update(t.Context(), s, grantKey(fmt.Sprint(i)), func(old []byte) ([]byte, error) {
					n, _ := strconv.Atoi(string(old)) // nothing is 0
					return strconv.AppendInt(nil, int64(n+1), 10), nil
				})
				if err != nil {
					t.Error(err)
					return
				}
				if counts[i]++; string(rec.Data) != fmt.Sprint(counts[i]) {
					t.Errorf("writer %d: %s, want %d", i, rec.Data, counts[i])
				}
			}
		})
	}
	for range 10 {
		if _, err := w.keys(setting).Rotate(t.Context(), ""); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
	s := w.sealed(setting)
	for i, n := range counts {
		if n > 0 {
			mustGet(t, s, grantKey(fmt.Sprint(i)), fmt.Sprint(n))
		}
	}
}

// What does not open stays as it is, is told of, and keeps its key.
func TestRotateKeepsWhatDoesNotOpen(t *testing.T) {
	w := newWorld(t)
	s := w.sealed("keychain")
	mustPut(t, s, grantKey("good"), "token")
	mustPut(t, s, grantKey("bad"), "token")
	bad, err := w.store.Get(t.Context(), grantKey("bad"))
	if err != nil {
		t.Fatal(err)
	}
	bad.Data[len(bad.Data)-1] ^= 1
	if _, err := w.store.Put(t.Context(), bad.Key, bad.Data, bad.Version); err != nil {
		t.Fatal(err)
	}
	got, err := w.keys("keychain").Rotate(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]vault.Key{bad.Key}, got.Unopened); diff != "" || got.Resealed != 1 {
		t.Errorf("%d resealed, unopened (-want +got)\n%s", got.Resealed, diff)
	}
	mustGet(t, w.sealed("keychain"), grantKey("good"), "token")
	if rec, err := w.store.Get(t.Context(), bad.Key); err != nil || string(rec.Data) != string(bad.Data) {
		t.Errorf("the bad record was touched: %v", err)
	}
}

// Data keys that nothing needs go after a while, not at once.
func TestRetiredKeysGo(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.dir = dir
		mustPut(t, w.sealed("keychain"), grantKey("a"), "token")
		count := func() int {
			if _, err := w.keys("keychain").Rotate(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			status, err := w.keys("keychain").Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return status.DataKeys
		}
		if n := count(); n != 2 {
			t.Errorf("%d data keys just after a rotation, want 2", n)
		}
		time.Sleep(2 * time.Hour)
		if n := count(); n != 2 {
			t.Errorf("%d data keys after two hours and another one, want 2", n)
		}
		mustGet(t, w.sealed("keychain"), grantKey("a"), "token")
	})
}

// A new place that cannot be used leaves all as it was.
func TestRotateRefused(t *testing.T) {
	w := newWorld(t)
	setting := "file:" + w.stateFile()
	versions := fill(t, w.sealed(setting))
	w.keychain.forgets = true
	for _, to := range []string{"keychain", "env:UNSET", "file:" + w.dir, "passphrase", "nowhere"} {
		if _, err := w.keys(setting).Rotate(t.Context(), to); err == nil {
			t.Errorf("rotated to %s", to)
		}
		checkAll(t, w.sealed(setting), versions)
	}
	if _, err := w.keys(setting).Rotate(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	checkAll(t, w.sealed(setting), versions)
	if _, err := os.Stat(w.stateFile()); err != nil {
		t.Error(err)
	}
}
