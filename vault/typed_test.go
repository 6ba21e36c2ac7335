package vault

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestApprovals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		store := NewMemory()
		mine, hers := NewApprovals(store, ""), NewApprovals(store, "ann")
		approved := func(a *Approvals, digest string) bool {
			t.Helper()
			ok, err := a.Approved(ctx, digest)
			if err != nil {
				t.Fatal(err)
			}
			return ok
		}
		if approved(mine, "d1") {
			t.Error("approved before anybody did")
		}
		for range 2 {
			if err := mine.Approve(ctx, Approval{Digest: "d1", Server: "linear", Origin: "mcp.json"}); err != nil {
				t.Fatal(err)
			}
		}
		if !approved(mine, "d1") || approved(mine, "d2") || approved(hers, "d1") {
			t.Error("an approval is for one digest and one principal")
		}
		got, err := mine.List(ctx)
		want := []Approval{{Digest: "d1", Server: "linear", Origin: "mcp.json", At: now()}}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("List: %v (-want +got):\n%s", err, diff)
		}
		for range 2 {
			if err := mine.Revoke(ctx, "d1"); err != nil {
				t.Fatal(err)
			}
		}
		if approved(mine, "d1") {
			t.Error("approved after Revoke")
		}
	})
}

// What cannot be read is not approved, and hides nothing else.
func TestApprovalsUnreadable(t *testing.T) {
	ctx := t.Context()
	store := NewMemory()
	a := NewApprovals(store, "")
	if err := a.Approve(ctx, Approval{Digest: "good"}); err != nil {
		t.Fatal(err)
	}
	for _, digest := range []string{"bad", "moved"} {
		data := map[string]string{"bad": `{"digest":`, "moved": `{"digest":"good"}`}[digest]
		if _, err := store.Put(ctx, LocalKey(KindApproval, digest), []byte(data), 0); err != nil {
			t.Fatal(err)
		}
		if ok, err := a.Approved(ctx, digest); ok || err != nil {
			t.Errorf("Approved(%s) = %v, %v", digest, ok, err)
		}
	}
	if list, err := a.List(ctx); len(list) != 2 || err != nil {
		t.Errorf("List = %v, %v; want the readable ones", list, err)
	}
	if err := a.Approve(ctx, Approval{Digest: "bad"}); err != nil {
		t.Errorf("approving over an unreadable one: %v", err)
	}
}

func TestEras(t *testing.T) {
	ctx := t.Context()
	store := NewMemory()
	eras := NewEras(store)
	if _, err := eras.Recall(ctx, "d"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Recall of nothing: %v", err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	want := Era{Digest: "d", Name: "modern", Protocol: "2026-07-28", Learned: at}
	for _, e := range []Era{{Digest: "d", Name: "legacy"}, want} {
		if err := eras.Remember(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	got, err := eras.Recall(ctx, "d")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Recall: %v (-want +got):\n%s", err, diff)
	}
	if err := eras.Forget(ctx, "d"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Put(ctx, LocalKey(KindEra, "d"), []byte("?"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := eras.Recall(ctx, "d"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Recall of rubbish: %v, want ErrNotFound", err)
	}
}

func TestCatalog(t *testing.T) {
	ctx := t.Context()
	store := NewMemory()
	c := NewCatalog(store, "")
	if _, err := c.Load(ctx, "a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Load of nothing: %v", err)
	}
	want := Entry{
		Name: "a@work", Digest: "d", Protocol: "2025-11-25", Updated: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		TTL: time.Minute, Public: true, Instructions: "first\nthen",
		ServerInfo: []byte(`{ "name":"<x> & \u2028" }`),
		Tools:      []byte("[ {\"name\" : \"t\",\n \"n\":9007199254740993} ]"),
		Prompts:    []byte{},
	}
	for _, e := range []Entry{{Name: "a@work"}, want, {Name: "b"}} {
		if err := c.Save(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	got, err := c.Load(ctx, "a@work")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Load: %v (-want +got):\n%s", err, diff)
	}
	if _, err := store.Put(ctx, LocalKey(KindCatalog, "rubbish"), []byte("{}"), 0); err != nil {
		t.Fatal(err)
	}
	if list, err := c.List(ctx); err != nil || len(list) != 2 || list[0].Name != "a@work" || list[1].Name != "b" {
		t.Errorf("List = %v, %v", list, err)
	}
	if _, err := c.Load(ctx, "rubbish"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Load of rubbish: %v", err)
	}
	if err := c.Forget(ctx, "b"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Load(ctx, "b"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Load after Forget: %v", err)
	}
}

func TestEntryKeepsBytes(t *testing.T) {
	part := rapid.OneOf(rapid.Just[[]byte](nil), rapid.SliceOf(rapid.Byte()))
	rapid.Check(t, func(t *rapid.T) {
		want := Entry{Name: rapid.String().Draw(t, "name"), Updated: now()}
		for _, p := range want.parts() {
			*p = part.Draw(t, "part")
		}
		data, err := encodeEntry(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeEntry(data)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Fatalf("%v (-want +got):\n%s", err, diff)
		}
	})
}

// Whatever bytes are stored, decoding neither panics nor invents: what it
// accepts encodes to something it accepts as the same.
func FuzzDecodeEntry(f *testing.F) {
	whole, err := encodeEntry(Entry{Name: "a", Tools: []byte(`[{"name":"t"}]`), Prompts: []byte("[]")})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add([]byte("{\"sizes\":[9223372036854775807]}\nx"))
	f.Add([]byte("{\"sizes\":[-5,0,1]}\nx"))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := decodeEntry(data)
		if err != nil {
			return
		}
		again, err := encodeEntry(e)
		if err != nil {
			t.Fatal(err)
		}
		same, err := decodeEntry(again)
		if err != nil || !bytes.Equal(same.Tools, e.Tools) || same.Name != e.Name {
			t.Errorf("decoded %+v, then %+v, %v", e, same, err)
		}
	})
}
