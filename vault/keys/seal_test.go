package keys_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/keys"
	"github.com/usher-mcp/usher/vault/vaulttest"
)

// flip is a Sealer that only tests may use: it inverts the bytes of secrets and binds
// the key and the version.
type flip struct{}

func (flip) Sealing(context.Context) (keys.Sealing, error) {
	return func(key vault.Key, version int64, plain []byte) []byte {
		out := []byte(fmt.Sprintln(key, version))
		for _, b := range plain {
			if vault.HoldsSecrets(key.Kind) {
				b = ^b
			}
			out = append(out, b)
		}
		return out
	}, nil
}

func (flip) Open(_ context.Context, rec vault.Record) ([]byte, error) {
	body, ok := bytes.CutPrefix(rec.Data, []byte(fmt.Sprintln(rec.Key, rec.Version)))
	if !ok {
		return nil, errors.New("sealed for another record")
	}
	out := []byte{}
	for _, b := range body {
		if vault.HoldsSecrets(rec.Kind) {
			b = ^b
		}
		out = append(out, b)
	}
	return out, nil
}

func TestSealedOnlyWhatHoldsSecrets(t *testing.T) {
	tests := []struct {
		kind   string
		sealed bool
	}{
		{vault.KindGrant, true},
		{vault.KindClient, true},
		{vault.KindPending, true},
		{vault.KindSecret, true},
		{"a kind nobody thought of", true},
		{vault.KindApproval, false},
		{vault.KindEra, false},
		{vault.KindCatalog, false},
		{vault.KindPin, false},
		{vault.KindKey, false},
	}
	for _, tt := range tests {
		t.Run(tt.kind, func(t *testing.T) {
			raw := openMemory(t)
			s := keys.Sealed(raw, flip{})
			key := vault.LocalKey(tt.kind, "n")
			if _, err := s.Put(t.Context(), key, []byte("open sesame"), 0); err != nil {
				t.Fatal(err)
			}
			rec, err := raw.Get(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if plain := bytes.Contains(rec.Data, []byte("sesame")); plain == tt.sealed {
				t.Errorf("stored %q, want sealed: %v", rec.Data, tt.sealed)
			}
		})
	}
}

// A record that does not open hides no other and is not lost by looking at it.
func TestSealedKeepsWhatDoesNotOpen(t *testing.T) {
	ctx := t.Context()
	raw := openMemory(t)
	s := keys.Sealed(raw, flip{})
	good, bad := vault.LocalKey(vault.KindGrant, "good"), vault.LocalKey(vault.KindGrant, "bad")
	if _, err := s.Put(ctx, good, []byte("token"), 0); err != nil {
		t.Fatal(err)
	}
	moved, err := raw.Get(ctx, good)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := raw.Put(ctx, bad, moved.Data, 0); err != nil {
		t.Fatal(err)
	}

	corrupt := func(what string, err error) {
		t.Helper()
		if c, ok := errors.AsType[*vault.CorruptError](err); !ok || c.Key != bad {
			t.Errorf("%s: %v, want a CorruptError for %s", what, err, bad)
		}
	}
	_, err = s.Get(ctx, bad)
	corrupt("Get", err)
	_, err = s.Take(ctx, bad)
	corrupt("Take", err)
	recs, err := s.List(ctx, vault.KindGrant, "")
	corrupt("List", err)
	if len(recs) != 1 || recs[0].Key != good || string(recs[0].Data) != "token" {
		t.Errorf("List = %v, want the good one", recs)
	}
	if _, err := raw.Get(ctx, bad); err != nil {
		t.Errorf("the record that does not open is gone: %v", err)
	}
}

func TestSealedContract(t *testing.T) {
	vaulttest.Run(t, func(t *testing.T) vault.Store { return keys.Sealed(openMemory(t), flip{}) })
}
