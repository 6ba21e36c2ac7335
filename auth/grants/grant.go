package grants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/vault"
)

// Grant is everything needed to act for an account later: what was given, by whom,
// to which client, and for which resource. It is the record of kind vault.KindGrant.
type Grant struct {
	// Generation grows with every write, across logins too.
	Generation int64  `json:"generation"`
	Flow       Flow   `json:"flow"`
	ServerURL  string `json:"server_url"`

	Issuer             string            `json:"issuer,omitempty"`
	TokenEndpoint      string            `json:"token_endpoint"`
	RevocationEndpoint string            `json:"revocation_endpoint,omitempty"`
	Client             oauth.Credentials `json:"client"`
	// Bind and Group are what the client is registered under, if it is.
	Bind   string       `json:"bind,omitempty"`
	Group  string       `json:"group,omitempty"`
	Bounds oauth.Bounds `json:"bounds,omitzero"`

	Resource  string   `json:"resource,omitempty"`
	Audience  string   `json:"audience,omitempty"`
	Requested []string `json:"requested_scopes,omitempty"`
	Scopes    []string `json:"scopes,omitempty"`

	Access   oauth.StoredSecret `json:"access_token"`
	Refresh  oauth.StoredSecret `json:"refresh_token,omitzero"`
	Type     string             `json:"token_type"`
	DPoP     oauth.StoredSecret `json:"dpop_key,omitzero"`
	Obtained time.Time          `json:"obtained"`
	// Expires is zero when it is not known: the token is used until it is refused.
	Expires time.Time                  `json:"expires,omitzero"`
	Extra   map[string]json.RawMessage `json:"extra,omitempty"`

	// Ended is set when the authorization server has confirmed that the grant is
	// over. The record stays: it says why.
	Ended *Ending `json:"ended,omitempty"`

	// Version is that of the record it was read from.
	Version int64 `json:"-"`
}

// Ending says when and why a grant ended.
type Ending struct {
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}

// LogValue keeps the tokens out of logs.
func (g Grant) LogValue() slog.Value {
	return slog.GroupValue(slog.Int64("generation", g.Generation), slog.String("issuer", g.Issuer), slog.Any("access", g.Access.Secret))
}

// Take puts the tokens of an answer into the grant. A refresh token that the answer
// does not replace stays good.
func (g *Grant) Take(a *oauth.TokenResponse) {
	g.Obtained = time.Now().Round(0) // by the clock on the wall: tokens grow old while a machine sleeps
	g.Access, g.Type, g.Ended = oauth.StoredSecret{Secret: a.Access}, a.Type, nil
	if !a.Refresh.IsZero() {
		g.Refresh = oauth.StoredSecret{Secret: a.Refresh}
	}
	g.Expires = time.Time{}
	if a.Life > 0 {
		g.Expires = g.Obtained.Add(a.Life)
	}
	switch {
	case a.Scopes != nil:
		g.Scopes = a.Scopes
	case g.Scopes == nil:
		g.Scopes = g.Requested // RFC 6749, section 5.1: left out when they are the same
	}
	if len(a.Extra) > 0 {
		g.Extra = a.Extra
	}
}

// CheckBinding refuses tokens that anybody could use where bound ones were asked for.
func (g *Grant) CheckBinding(answer *oauth.TokenResponse) error {
	if !g.DPoP.IsZero() && answer.Type != "DPoP" {
		return fmt.Errorf("%w: it issued a token that is not bound to our key; turn oauth.dpop off if it does not support DPoP", oauth.ErrRefused)
	}
	if g.DPoP.IsZero() && answer.Type != "Bearer" {
		return fmt.Errorf("%w: it issued a token of a type that was not asked for", oauth.ErrRefused)
	}
	return nil
}

// expired reports whether the token is past its known life.
func (g *Grant) expired(now time.Time) bool { return !g.Expires.IsZero() && !now.Before(g.Expires) }

// suits reports why a grant must not be used towards a server at this address; nil
// when it may. Tokens go only to the resource they were issued for.
func (g *Grant) suits(serverURL string) error {
	now, err := url.Parse(serverURL)
	if err != nil {
		return errors.New("the server's address cannot be read")
	}
	then, err := url.Parse(g.ServerURL)
	if err != nil || oauth.Origin(then) != oauth.Origin(now) {
		return fmt.Errorf("the login was for %s and the server is now at %s", oauth.HostOf(g.ServerURL), oauth.HostOf(serverURL))
	}
	if oauth.CanonicalResource(then) == oauth.CanonicalResource(now) || g.Resource != "" && oauth.ResourceCovers(g.Resource, now) == nil {
		return nil
	}
	return errors.New("the login was for another path of this host")
}

// unrestricted reports whether the token may be good at other servers too although
// nothing in the definition of this one says that it may get such a token. Older
// versions asked for one when a provider refused the resource parameter.
func (g *Grant) unrestricted(srv *config.Server) bool {
	return g.Resource == "" && oauth.ResourceChoice(oauth.SettingsOf(*srv), g.Issuer) != oauth.ResourceOmit
}

// Store reads and writes the stored logins, and remembers what was last read.
type Store struct {
	env *Env

	cache   grantCache
	looks   versionCache
	unsaved unsavedGrants
}

// Load reads an account's grant from the store; nil when there is none.
func (gs *Store) Load(ctx context.Context, a Account) (*Grant, error) {
	rec, err := gs.env.Store.Get(ctx, a.Key(vault.KindGrant))
	if errors.Is(err, vault.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the login of %s: %w", a, err)
	}
	return Decode(rec)
}

// Decode reads the grant in a record.
func Decode(rec vault.Record) (*Grant, error) {
	g := &Grant{Version: rec.Version}
	if err := json.Unmarshal(rec.Data, g); err != nil {
		// The error of encoding/json may quote the data.
		return nil, &vault.CorruptError{Key: rec.Key, Err: errors.New("it is not a login as this version writes it")}
	}
	return g, nil
}

// Encode returns the data of the grant's record.
func (g *Grant) Encode() ([]byte, error) { return json.Marshal(g) }

// Room is how much room a grant may need in the store.
const Room = 64 << 10

// storeLogin writes the grant of a new login over whatever was there. A refresh of
// the old grant that is in flight then finds the record changed and lets it be.
func (gs *Store) storeLogin(ctx context.Context, a Account, g *Grant) error {
	key := a.Key(vault.KindGrant)
	rec, err := vault.Update(ctx, gs.env.Store, key, func(old []byte) ([]byte, error) {
		var before Grant
		_ = json.Unmarshal(old, &before) // only its counter is wanted; a new login replaces even a damaged one
		g.Generation = before.Generation + 1
		return g.Encode()
	})
	if err != nil {
		return fmt.Errorf("store the login of %s: %w", a, err)
	}
	g.Version = rec.Version
	gs.env.tokens.minted(g.Access.Secret, false)
	gs.cache.put(a, g)
	return nil
}

// grantLife is how long a grant that was read is used before the store is asked
// whether it is still the same, so that what other processes did is noticed soon and
// not every request costs a read.
const grantLife = time.Second

const (
	// storeWait is how long a request with a login waits for a store that does not
	// answer, and storeRest for how long the store is left alone after that.
	storeWait = time.Second
	storeRest = 5 * time.Second
)

// grantCache holds what was last read. Grants in it are never changed.
type grantCache struct {
	mu sync.Mutex // guards by
	by map[Account]cachedGrant
}

type cachedGrant struct {
	g  *Grant // nil: there was none
	at time.Time
}

// version is that of the record, 0 when there was none.
func (c cachedGrant) version() int64 {
	if c.g == nil {
		return 0
	}
	return c.g.Version
}

func (c *grantCache) get(a Account) (cachedGrant, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	got, ok := c.by[a]
	return got, ok
}

func (c *grantCache) put(a Account, g *Grant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil || len(c.by) > 10_000 {
		c.by = map[Account]cachedGrant{}
	}
	c.by[a] = cachedGrant{g, time.Now()}
}

// confirm takes in that the store had the same at a later time, and returns what is
// known by now.
func (c *grantCache) confirm(a Account, g *Grant, at time.Time) *Grant {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, ok := c.by[a]
	if !ok || now.g == g && now.at.Before(at) {
		now = cachedGrant{g, at}
		c.by[a] = now
	}
	return now.g
}

// rest keeps using what was last read while the store is away.
func (c *grantCache) rest(a Account, g *Grant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by[a].g == g {
		c.by[a] = cachedGrant{g, time.Now().Add(storeRest - grantLife)}
	}
}

// Current returns the account's grant, nil when there is none. While the store
// cannot be reached, what was last read goes on to be used.
func (gs *Store) Current(ctx context.Context, a Account) (*Grant, error) {
	if g := gs.fromMemory(ctx, a); g != nil {
		return g, nil
	}
	cached, ok := gs.cache.get(a)
	if ok && time.Since(cached.at) < grantLife {
		return cached.g, nil
	}
	if !ok {
		return gs.reload(ctx, a)
	}
	if cached.g == nil {
		return gs.confirm(ctx, a, cached)
	}
	short, cancel := context.WithTimeoutCause(ctx, storeWait, vault.ErrUnavailable)
	defer cancel()
	g, err := gs.confirm(short, a, cached)
	if err != nil && (errors.Is(err, vault.ErrUnavailable) || errors.Is(context.Cause(short), vault.ErrUnavailable)) {
		gs.cache.rest(a, cached.g)
		return cached.g, nil
	}
	return g, err
}

// Has names the login that an account has: the number is another one after every login
// and every refresh, and 0 when there is none that could be used. Calling it before a
// request saves that request the read.
func (m *Manager) Has(ctx context.Context, a Account) int64 {
	g, err := m.Grants.Current(ctx, a.Normal())
	if err != nil || g == nil || g.Ended != nil {
		return 0
	}
	return g.Version
}

func (gs *Store) reload(ctx context.Context, a Account) (*Grant, error) {
	g, err := gs.Load(ctx, a)
	if err == nil {
		gs.cache.put(a, g)
	}
	return g, err
}

// Remember puts what was just read in place of what was read earlier.
func (gs *Store) Remember(a Account, g *Grant) { gs.cache.put(a, g) }
