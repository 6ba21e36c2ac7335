package gateway

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// TokenStore keeps records of tokens by id. The program that owns the store
// implements it.
type TokenStore interface {
	// Load returns a record, nil when there is none.
	Load(ctx context.Context, id string) ([]byte, error)
	// Save writes a new record.
	Save(ctx context.Context, id string, record []byte) error
	// Remove deletes a record and reports whether there was one.
	Remove(ctx context.Context, id string) (bool, error)
	// All returns every record.
	All(ctx context.Context) ([][]byte, error)
}

// Token is what is known of a minted token. The secret is not: only its hash is
// kept.
type Token struct {
	ID        string    `json:"id"`
	Name      string    `json:"name,omitempty"` // what it is for, in the user's words
	Principal string    `json:"principal"`
	Servers   []string  `json:"servers,omitempty"`
	Tools     []string  `json:"tools,omitempty"`
	Created   time.Time `json:"created"`
	Expires   time.Time `json:"expires,omitzero"` // zero: never
}

// Expired reports whether the token is of no use any more.
func (t Token) Expired() bool { return !t.Expires.IsZero() && !time.Now().Before(t.Expires) }

type tokenRecord struct {
	Token
	Hash string `json:"hash"` // of the secret, SHA-256 in hex
}

// Mint says what a new token is for.
type Mint struct {
	Name string
	// Principal defaults to the local user: the token acts with the logins of
	// whoever minted it.
	Principal string
	// Servers and Tools bound what it opens, see surface.Agent. Empty: all.
	Servers, Tools []string
	// TTL is how long it is good for. 0: for ever.
	TTL time.Duration
}

// ErrNoToken: there is no token with that id.
var ErrNoToken = errors.New("no such token; see: usher token list")

// Tokens are minted tokens. It is an [Authenticator] for those who bring one.
type Tokens struct {
	store TokenStore

	mu    sync.Mutex // guards known
	known map[string]knownToken
}

// knownToken spares the store a read per request.
type knownToken struct {
	record tokenRecord
	read   time.Time // from the store
	until  time.Time // used without asking it again
}

const (
	tokenPrefix   = "usher_"
	tokenIDLen    = 8
	tokenSecret   = 32
	tokenFresh    = 5 * time.Second // how late another process's revocation is noticed
	tokenWait     = 2 * time.Second // for a store that does not answer
	tokenAway     = time.Hour       // how long a token goes on while the store is away
	maxKnownToken = 4096
)

// NewTokens returns the tokens kept in store.
func NewTokens(store TokenStore) *Tokens {
	return &Tokens{store: store, known: map[string]knownToken{}}
}

// Mint makes a token. The text is shown once and kept nowhere.
func (t *Tokens) Mint(ctx context.Context, m Mint) (text string, token Token, err error) {
	if m.TTL < 0 {
		return "", Token{}, fmt.Errorf("mint a token: the ttl %s is negative", m.TTL)
	}
	id, secret := make([]byte, tokenIDLen), make([]byte, tokenSecret)
	_, _ = rand.Read(id) // never fails
	_, _ = rand.Read(secret)
	rec := tokenRecord{Token: Token{
		ID: hex.EncodeToString(id), Name: m.Name, Principal: m.Principal, Servers: m.Servers, Tools: m.Tools,
		Created: time.Now().UTC().Truncate(time.Second),
	}}
	if rec.Principal == "" {
		rec.Principal = localPrincipal
	}
	if m.TTL > 0 {
		rec.Expires = time.Now().UTC().Add(m.TTL)
	}
	encoded := base64.RawURLEncoding.EncodeToString(secret)
	rec.Hash = hashSecret(encoded)
	data, err := json.Marshal(rec)
	if err != nil {
		return "", Token{}, fmt.Errorf("mint a token: %w", err)
	}
	if err := t.store.Save(ctx, rec.ID, data); err != nil {
		return "", Token{}, fmt.Errorf("keep the token: %w", err)
	}
	return tokenPrefix + rec.ID + "_" + encoded, rec.Token, nil
}

func hashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// List returns all tokens, oldest first.
func (t *Tokens) List(ctx context.Context) ([]Token, error) {
	all, err := t.store.All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	out := make([]Token, 0, len(all))
	for _, data := range all {
		var rec tokenRecord
		if err := json.Unmarshal(data, &rec); err != nil {
			return nil, fmt.Errorf("list tokens: a record cannot be read: %w", err)
		}
		out = append(out, rec.Token)
	}
	slices.SortFunc(out, func(a, b Token) int {
		if c := a.Created.Compare(b.Created); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out, nil
}

// Revoke ends a token, in this process at once and in others within seconds. The
// error is [ErrNoToken] when there is none.
func (t *Tokens) Revoke(ctx context.Context, id string) error {
	found, err := t.store.Remove(ctx, id)
	t.forget(id)
	if err != nil {
		return fmt.Errorf("revoke token %s: %w", id, err)
	}
	if !found {
		return fmt.Errorf("revoke token %q: %w", id, ErrNoToken)
	}
	return nil
}

// Authenticate implements [Authenticator].
func (t *Tokens) Authenticate(ctx context.Context, r *http.Request) (Identity, error) {
	text, ok := bearer(r)
	if !ok {
		return Identity{}, &RefusedError{Status: http.StatusUnauthorized, Challenge: `Bearer realm="usher"`, Reason: "a bearer token is needed"}
	}
	refused := &RefusedError{
		Status: http.StatusUnauthorized, Challenge: `Bearer realm="usher", error="invalid_token"`,
		Reason: "the token is not valid",
	}
	id, secret, ok := splitToken(text)
	if !ok {
		return Identity{}, refused
	}
	rec, ok, err := t.record(ctx, id)
	switch {
	case err != nil:
		return Identity{}, fmt.Errorf("look up a token: %w", err)
	case !ok, subtle.ConstantTimeCompare([]byte(rec.Hash), []byte(hashSecret(secret))) != 1, rec.Expired():
		return Identity{}, refused
	}
	return Identity{Principal: rec.Principal, Servers: rec.Servers, Tools: rec.Tools}, nil
}

func splitToken(text string) (id, secret string, ok bool) {
	rest, ok := strings.CutPrefix(text, tokenPrefix)
	if !ok {
		return "", "", false
	}
	id, secret, ok = strings.Cut(rest, "_")
	raw, err := hex.DecodeString(id)
	return id, secret, ok && err == nil && len(raw) == tokenIDLen && secret != ""
}

func (t *Tokens) record(ctx context.Context, id string) (tokenRecord, bool, error) {
	now := time.Now()
	t.mu.Lock()
	k, ok := t.known[id]
	t.mu.Unlock()
	if ok && now.Before(k.until) {
		return k.record, true, nil
	}
	short, cancel := context.WithTimeout(ctx, tokenWait)
	defer cancel()
	data, err := t.store.Load(short, id)
	if err != nil && ok && ctx.Err() == nil && now.Sub(k.read) < tokenAway {
		// The store is away. Who was known goes on; a revocation is noticed when it
		// is back.
		t.keep(id, knownToken{k.record, k.read, now.Add(tokenFresh)})
		return k.record, true, nil
	}
	if err != nil {
		return tokenRecord{}, false, err
	}
	if data == nil {
		t.forget(id)
		return tokenRecord{}, false, nil
	}
	var rec tokenRecord
	if err := json.Unmarshal(data, &rec); err != nil || rec.ID != id {
		return tokenRecord{}, false, fmt.Errorf("the record of token %s cannot be read: %w", id, err)
	}
	t.keep(id, knownToken{rec, now, now.Add(tokenFresh)})
	return rec, true, nil
}

func (t *Tokens) forget(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, id)
}

func (t *Tokens) keep(id string, k knownToken) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.known) >= maxKnownToken {
		clear(t.known)
	}
	t.known[id] = k
}
