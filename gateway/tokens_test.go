package gateway

import (
	"context"
	"errors"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/mcp"
)

// tokenMap is a TokenStore that counts reads.
type tokenMap struct {
	mu    sync.Mutex
	all   map[string][]byte
	loads int
	fail  error
}

func (m *tokenMap) Load(_ context.Context, id string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.loads++
	return m.all[id], m.fail
}

func (m *tokenMap) Save(_ context.Context, id string, record []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all[id] = record
	return m.fail
}

func (m *tokenMap) Remove(_ context.Context, id string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.all[id]
	delete(m.all, id)
	return ok, m.fail
}

func (m *tokenMap) All(context.Context) ([][]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out [][]byte
	for _, r := range m.all {
		out = append(out, r)
	}
	return out, m.fail
}

func (m *tokenMap) IDs(context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.loads++
	return slices.Collect(maps.Keys(m.all)), m.fail
}

// reads is how often the store was asked for anything.
func (m *tokenMap) reads() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.loads
}

func authenticate(t *testing.T, a Authenticator, authorization string) (Identity, error) {
	t.Helper()
	r := httptest.NewRequest("POST", "/mcp", nil)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	return a.Authenticate(t.Context(), r)
}

func TestTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &tokenMap{all: map[string][]byte{}}
		tokens := NewTokens(store)
		text, token, err := tokens.Mint(t.Context(), Mint{Name: "ci", Principal: "alice", Servers: []string{"git*"}, Tools: []string{"git/log"}, TTL: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		secret, ok := strings.CutPrefix(text, "usher_"+token.ID+"_")
		if !ok {
			t.Fatalf("%.20q…", text)
		}
		if strings.Contains(string(store.all[token.ID]), secret) {
			t.Error("the secret is kept")
		}
		got, err := authenticate(t, tokens, "Bearer "+text)
		want := Identity{Principal: "alice", Credential: "token:" + token.ID, Expires: token.Expires, Servers: []string{"git*"}, Tools: []string{"git/log"}}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got)\n%s", err, diff)
		}
		if _, err := authenticate(t, tokens, "bearer "+text); err != nil || store.loads != 1 {
			t.Errorf("%v, %d reads", err, store.loads)
		}
		for _, wrong := range []string{"", "Basic " + text, "Bearer", "Bearer ", "Bearer " + text + "x", "Bearer usher_" + token.ID + "_", "Bearer usher_zz_" + secret, text} {
			var no *RefusedError
			if _, err := authenticate(t, tokens, wrong); !errors.As(err, &no) || no.Status != 401 {
				t.Errorf("%.20q: %v", wrong, err)
			}
		}
		time.Sleep(2 * time.Hour)
		if _, err := authenticate(t, tokens, "Bearer "+text); err == nil {
			t.Error("it does not run out")
		}
	})
}

func TestRevoke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &tokenMap{all: map[string][]byte{}}
		tokens := NewTokens(store)
		text, token, err := tokens.Mint(t.Context(), Mint{})
		if err != nil || token.Principal != localPrincipal {
			t.Fatal(err, token)
		}
		time.Sleep(time.Second)
		second, other, _ := tokens.Mint(t.Context(), Mint{Name: "b"})
		list, err := tokens.List(t.Context())
		if err != nil || len(list) != 2 || list[0].ID != token.ID || list[1].Name != "b" {
			t.Errorf("%v %+v", err, list)
		}
		if _, err := authenticate(t, tokens, "Bearer "+text); err != nil {
			t.Fatal(err)
		}
		if err := tokens.Revoke(t.Context(), token.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := authenticate(t, tokens, "Bearer "+text); err == nil {
			t.Error("it still opens")
		}
		if err := tokens.Revoke(t.Context(), token.ID); !errors.Is(err, ErrNoToken) {
			t.Errorf("again: %v", err)
		}
		if _, err := authenticate(t, tokens, "Bearer "+second); err != nil {
			t.Error(err)
		}
		delete(store.all, other.ID) // by another process
		time.Sleep(tokenFresh + time.Second)
		if _, err := authenticate(t, tokens, "Bearer "+second); err == nil {
			t.Error("another process's revocation is not noticed")
		}
		store.fail = errors.New("disk")
		var no *RefusedError
		if _, err := authenticate(t, tokens, "Bearer "+second); err == nil || errors.As(err, &no) {
			t.Errorf("a broken store: %v", err)
		}
		if _, _, err := tokens.Mint(t.Context(), Mint{TTL: -1}); err == nil {
			t.Error("a negative ttl")
		}
	})
}

// While the store is away open sessions go on for as long as new requests of the same
// token do, and no longer.
func TestSessionsWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &tokenMap{all: map[string][]byte{}}
		g := New(newWaiting(), &Options{Auth: NewTokens(store), SessionIdle: 24 * time.Hour})
		defer g.Close()
		text, _, err := NewTokens(store).Mint(t.Context(), Mint{})
		if err != nil {
			t.Fatal(err)
		}
		helloAs(t, g.Handler(), text, mcp.LatestLegacy)
		store.mu.Lock()
		store.fail = errors.New("away")
		store.mu.Unlock()
		time.Sleep(tokenAway - time.Minute)
		if n := g.Stats().Sessions; n != 1 {
			t.Errorf("%d sessions after 59 minutes", n)
		}
		time.Sleep(2 * time.Minute)
		if n := g.Stats().Sessions; n != 0 {
			t.Errorf("%d sessions after 61 minutes", n)
		}
	})
}

func FuzzSplitToken(f *testing.F) {
	for _, s := range []string{"", "usher_", "usher_0011223344556677_x", "usher__", "usher_0011223344556677_a_b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, secret, ok := splitToken(s)
		if ok && s != tokenPrefix+id+"_"+secret {
			t.Errorf("%q became %q and %q", s, id, secret)
		}
	})
}

// While the store is away who was known goes on, for a while; who was revoked or is
// new does not.
func TestTokensWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &tokenMap{all: map[string][]byte{}}
		tokens := NewTokens(store)
		var text [3]string
		var ids [3]string
		for i := range text {
			s, token, err := tokens.Mint(t.Context(), Mint{Principal: "ann"})
			if err != nil {
				t.Fatal(err)
			}
			text[i], ids[i] = "Bearer "+s, token.ID
		}
		for _, i := range []int{0, 1} {
			if _, err := authenticate(t, tokens, text[i]); err != nil {
				t.Fatal(err)
			}
		}
		delete(store.all, ids[1]) // revoked elsewhere
		time.Sleep(2 * tokenFresh)
		_, err := authenticate(t, tokens, text[1])
		var no *RefusedError
		if !errors.As(err, &no) {
			t.Fatalf("revoked: %v", err)
		}
		store.fail = errors.New("away")
		time.Sleep(2 * tokenFresh)
		if id, err := authenticate(t, tokens, text[0]); err != nil || id.Principal != "ann" {
			t.Errorf("known: %+v, %v", id, err)
		}
		for what, i := range map[string]int{"revoked": 1, "new": 2} {
			if _, err := authenticate(t, tokens, text[i]); err == nil {
				t.Errorf("%s: let in", what)
			}
		}
		time.Sleep(tokenAway)
		if _, err := authenticate(t, tokens, text[0]); err == nil {
			t.Error("known: let in for longer than an hour without the store")
		}
	})
}
