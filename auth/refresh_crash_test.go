package auth

import (
	"context"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/vault"
)

// A process dies after the server has rotated the refresh token and before the new
// one is stored. The next one gets the lease while the server still accepts the old
// token once more.
func TestKilledBetweenCommitAndWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &fake.AuthOptions{Grace: 10 * time.Second}, nil)
		w.login()
		w.as.Expire()
		g := w.grant()
		// What the dead process did and left behind.
		if _, err := w.store.Lease(t.Context(), "refresh/"+w.a.Key(vault.KindGrant).String(), refreshLease); err != nil {
			t.Fatal(err)
		}
		form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {g.Refresh.Reveal()}, "resource": {g.Resource}}
		if _, err := w.e.env.Client(oauth.Bounds{}).RequestToken(t.Context(), oauth.TokenRequest{Endpoint: g.TokenEndpoint, Form: form, Credentials: g.Client}); err != nil {
			t.Fatal(err)
		}
		w.mustCall()
		if n := w.tokens("refresh_token"); n != 2 {
			t.Errorf("%d refreshes, want that of the dead process and one repeat", n)
		}
	})
}

// hungStore is a store that does not answer writes of grants while it hangs.
type hungStore struct {
	vault.Store
	hangs atomic.Bool
}

func (s *hungStore) PutFenced(ctx context.Context, key vault.Key, data []byte, v int64, l vault.Lease) (vault.Record, error) {
	if s.hangs.Load() && key.Kind == vault.KindGrant {
		<-ctx.Done()
		return vault.Record{}, ctx.Err()
	}
	return s.Store.PutFenced(ctx, key, data, v, l)
}

func (s *hungStore) Put(ctx context.Context, key vault.Key, data []byte, v int64) (vault.Record, error) {
	if s.hangs.Load() {
		<-ctx.Done()
		return vault.Record{}, ctx.Err()
	}
	return s.Store.Put(ctx, key, data, v)
}

// A store that hangs in the middle of a renewal costs no tokens: they are used from
// memory and stored when it answers again.
func TestStoreHangsAfterRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		w.login()
		s := &hungStore{Store: w.store}
		e := New(s, &Options{RoundTripper: w.net})
		defer func() { _ = e.Close() }()
		c := &http.Client{Transport: e.Transport(w.net)}
		w.as.Expire()
		s.hangs.Store(true)
		if err := callAs(t.Context(), e, c, w.a, w.srv); err != nil {
			t.Fatalf("while the store hangs: %v", err)
		}
		// The server refuses the tokens that are in memory only: their refresh token
		// is not spent while its successor cannot be stored, nor is the older one.
		w.as.Expire()
		wantErr(t, callAs(t.Context(), e, c, w.a, w.srv), ErrUnavailable, "could not be stored yet")
		s.hangs.Store(false)
		time.Sleep(maxBackoff)
		if err := callAs(t.Context(), e, c, w.a, w.srv); err != nil {
			t.Errorf("after it: %v", err)
		}
		if g, n := w.grant(), w.tokens("refresh_token"); g.Generation != 3 || n != 2 {
			t.Errorf("generation %d after %d refreshes, want 3 after 2", g.Generation, n)
		}
	})
}

// A store that hangs forever does not keep the lease forever.
func TestHangingStoreFreesTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		w.login()
		s := &hungStore{Store: w.store}
		e := New(s, &Options{RoundTripper: w.net})
		defer func() { _ = e.Close() }()
		w.as.Expire()
		w.as.Set("token-status=503;on=refresh_token;times=1")
		s.hangs.Store(true) // the failure cannot be written down
		c := &http.Client{Transport: e.Transport(w.net)}
		if err := callAs(t.Context(), e, c, w.a, w.srv); err == nil {
			t.Fatal("the call worked")
		}
		time.Sleep(renewLimit + refreshLease)
		w.mustCall() // by another process
	})
}
