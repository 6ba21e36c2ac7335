package authn

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/gateway/authn/authntest"
)

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
		store := authntest.NewStore()
		tokens := NewTokens(store)
		text, token, err := tokens.Mint(t.Context(), Mint{Name: "ci", Principal: "alice", Servers: []string{"git*"}, Tools: []string{"git/log"}, TTL: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		secret, ok := strings.CutPrefix(text, "usher_"+token.ID+"_")
		if !ok {
			t.Fatalf("%.20q…", text)
		}
		if strings.Contains(string(store.Records[token.ID]), secret) {
			t.Error("the secret is kept")
		}
		got, err := authenticate(t, tokens, "Bearer "+text)
		want := Identity{Principal: "alice", Credential: "token:" + token.ID, Expires: token.Expires, Servers: []string{"git*"}, Tools: []string{"git/log"}}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got)\n%s", err, diff)
		}
		if _, err := authenticate(t, tokens, "bearer "+text); err != nil || store.Loads != 1 {
			t.Errorf("%v, %d reads", err, store.Loads)
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
		store := authntest.NewStore()
		tokens := NewTokens(store)
		text, token, err := tokens.Mint(t.Context(), Mint{})
		if err != nil || token.Principal != LocalPrincipal {
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
		delete(store.Records, other.ID) // by another process
		time.Sleep(TokenCacheTime + time.Second)
		if _, err := authenticate(t, tokens, "Bearer "+second); err == nil {
			t.Error("another process's revocation is not noticed")
		}
		store.Fail = errors.New("disk")
		var no *RefusedError
		if _, err := authenticate(t, tokens, "Bearer "+second); err == nil || errors.As(err, &no) {
			t.Errorf("a broken store: %v", err)
		}
		if _, _, err := tokens.Mint(t.Context(), Mint{TTL: -1}); err == nil {
			t.Error("a negative ttl")
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
		store := authntest.NewStore()
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
		delete(store.Records, ids[1]) // revoked elsewhere
		time.Sleep(2 * TokenCacheTime)
		_, err := authenticate(t, tokens, text[1])
		var no *RefusedError
		if !errors.As(err, &no) {
			t.Fatalf("revoked: %v", err)
		}
		store.Fail = errors.New("away")
		time.Sleep(2 * TokenCacheTime)
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
