package authn

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
	// IDs returns the ids of all records.
	IDs(ctx context.Context) ([]string, error)
}

// Token is what is known of a minted token. The secret is not: only its hash is
// kept.
type Token struct {
	ID        string    `json:"id"`
	Name      string    `json:"name,omitempty"` // what it is for, in the user's words
	Principal string    `json:"principal"`
	Servers   []string  `json:"servers,omitempty"`
	Tools     []string  `json:"tools,omitempty"`
	Profiles  []string  `json:"profiles,omitempty"`
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
	// Principal defaults to the local user: the token acts with the logins of the user
	// who minted it.
	Principal string
	// Servers and Tools are what it covers, see surface.Agent. Empty: all.
	Servers, Tools []string
	// Profiles are the only endpoints it may use, by their names. Empty: all.
	Profiles []string
	// TTL is how long it is valid. 0: until it is revoked.
	TTL time.Duration
}

// ErrNoToken: there is no token with that id.
var ErrNoToken = errors.New("no such token")

// Tokens mints, lists and revokes bearer tokens. It is an [Authenticator] and a [Watcher].
type Tokens struct {
	store TokenStore

	mu    sync.Mutex // guards what follows
	known map[string]knownToken
	used  time.Time // when a token was last accepted
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
	tokenPoll     = 500 * time.Millisecond // how often Watch asks for revocations
	tokenWait     = 2 * time.Second        // for a store that does not answer
	tokenAway     = time.Hour              // how long a token goes on while the store is away
	maxKnownToken = 4096
)

// TokenCacheTime is how long a token is accepted without asking the store, if Watch does
// not run.
const TokenCacheTime = 5 * time.Second

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
		ID: hex.EncodeToString(id), Name: m.Name, Principal: m.Principal, Servers: m.Servers, Tools: m.Tools, Profiles: m.Profiles,
		Created: time.Now().UTC().Truncate(time.Second),
	}}
	if rec.Principal == "" {
		rec.Principal = LocalPrincipal
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

// Revoke ends a token and all that was opened with it, in every process that serves
// the store within a second. The error is [ErrNoToken] when there is none.
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
	return Identity{
		Principal: rec.Principal, Credential: tokenCredential + rec.ID, Expires: rec.Expires,
		Servers: rec.Servers, Tools: rec.Tools, Profiles: rec.Profiles,
	}, nil
}

// tokenCredential is what the credentials of minted tokens begin with.
const tokenCredential = "token:"

// Watch implements [Watcher]. It asks the store twice a second for the ids of all
// tokens while one is in use: one short query, however many sessions there are. The
// store's notifications would be quicker, but one can be lost.
func (t *Tokens) Watch(ctx context.Context, live func() []string, revoked func(credential string)) {
	tick := time.NewTicker(tokenPoll)
	defer tick.Stop()
	for read := time.Now(); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		ids := tokenIDs(live())
		if len(ids) == 0 && !t.usedLately() {
			read = time.Now()
			continue
		}
		kept, err := t.ids(ctx)
		switch {
		case err == nil:
			read = time.Now()
			t.forgetAllBut(kept)
		case time.Since(read) < tokenAway:
			continue // the store is away: who was known goes on
		}
		for _, id := range ids {
			if !kept[id] {
				revoked(tokenCredential + id)
			}
		}
	}
}

// tokenIDs are the ids of those credentials that are minted tokens.
func tokenIDs(credentials []string) []string {
	var out []string
	for _, c := range credentials {
		if id, ok := strings.CutPrefix(c, tokenCredential); ok {
			out = append(out, id)
		}
	}
	return out
}

// ids are the ids of all tokens there are.
func (t *Tokens) ids(ctx context.Context) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, tokenWait)
	defer cancel()
	list, err := t.store.IDs(ctx)
	if err != nil {
		return nil, err
	}
	out := make(map[string]bool, len(list))
	for _, id := range list {
		out[id] = true
	}
	return out, nil
}

// usedLately reports whether a token may still be accepted without asking the store.
func (t *Tokens) usedLately() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Since(t.used) < TokenCacheTime
}

func (t *Tokens) forgetAllBut(kept map[string]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id := range t.known {
		if !kept[id] {
			delete(t.known, id)
		}
	}
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
	t.used = now
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
		t.keep(id, knownToken{k.record, k.read, now.Add(TokenCacheTime)})
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
	t.keep(id, knownToken{rec, now, now.Add(TokenCacheTime)})
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
