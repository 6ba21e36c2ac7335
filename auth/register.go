package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/usher-mcp/usher/auth/grants"
	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/vault"
)

// registration is the record, of kind vault.KindClient, of a client that this program
// registered. There is one for each issuer and class of redirect address.
type registration struct {
	oauth.Registration

	version int64
}

func registrationKey(bind, group string) vault.Key {
	return vault.LocalKey(vault.KindClient, grants.RecordName(group)+" "+grants.RecordName(bind))
}

// registrar finds the OAuth client to log in as, registering one where that is needed.
type registrar struct {
	*grants.Env

	grants *grants.Store
}

// identify finds out as whom to log in, in the order: configured client, client
// metadata document, stored registration, new registration. It may change the
// host of a loopback redirect to the one the server takes.
func (rg *registrar) identify(ctx context.Context, w *oauth.Client, p *oauth.Provider, o config.OAuth, to *oauth.Redirect, fresh bool) (oauth.Credentials, error) {
	if c, ok, err := oauth.ConfiguredClient(p, o); ok || err != nil {
		return c, err
	}
	known, err := rg.load(ctx, p.Binding(), to.Group())
	if err != nil {
		return oauth.Credentials{}, err
	}
	if !fresh && known != nil && known.Usable(*to) {
		known.Adapt(to)
		return known.Client, nil
	}
	if p.Metadata.RegistrationEndpoint == "" {
		return oauth.Credentials{}, oauth.NoClientError(p, *to)
	}
	r, err := rg.register(ctx, w, p, *to, known)
	if err != nil {
		return oauth.Credentials{}, err
	}
	r.Adapt(to)
	return r.Client, nil
}

func (rg *registrar) load(ctx context.Context, bind, group string) (*registration, error) {
	rec, err := rg.Store.Get(ctx, registrationKey(bind, group))
	if errors.Is(err, vault.ErrNotFound) || errors.Is(err, vault.ErrCorrupt) {
		return nil, nil // a damaged one is replaced
	}
	if err != nil {
		return nil, fmt.Errorf("look for a client registration: %w", err)
	}
	r := &registration{version: rec.Version}
	if json.Unmarshal(rec.Data, r) != nil {
		return nil, nil
	}
	return r, nil
}

// registerLease keeps two processes from registering twice.
const registerLease = 30 * time.Second

// register makes a new registration and keeps it. Of several processes one
// registers, the others use what it got: whatever is newer than before, which was
// found wanting.
func (rg *registrar) register(ctx context.Context, w *oauth.Client, p *oauth.Provider, to oauth.Redirect, before *registration) (*registration, error) {
	key := registrationKey(p.Binding(), to.Group())
	var out *registration
	err := vault.Hold(ctx, rg.Store, "register/"+key.Name, registerLease, func(ctx context.Context, l vault.Lease) error {
		now, err := rg.load(ctx, p.Binding(), to.Group())
		if err != nil {
			return err
		}
		if now != nil && (before == nil || now.version != before.version) && now.Usable(to) {
			out = now
			return nil
		}
		if now == nil {
			if err := rg.admit(ctx); err != nil {
				return err
			}
		}
		r, err := w.Register(ctx, p, to, rg.Options.ClientName)
		if err != nil {
			return fmt.Errorf("register a client at %s: %w", oauth.HostOf(p.Metadata.RegistrationEndpoint), err)
		}
		data, err := json.Marshal(r)
		if err != nil {
			return err
		}
		var version int64
		if now != nil {
			version = now.version
		}
		if _, err := rg.Store.PutFenced(ctx, key, data, version, l); err != nil {
			return fmt.Errorf("keep the client registration: %w", err)
		}
		out = &registration{Registration: *r}
		return nil
	})
	return out, err
}

// forget throws a registration away that its server no longer knows, so that
// the next login registers again. Only if it is still the same one.
func (rg *registrar) forget(ctx context.Context, bind, group string, c oauth.Credentials) {
	if c.Source != oauth.SourceDynamic || group == "" {
		return
	}
	r, err := rg.load(ctx, bind, group)
	if err != nil || r == nil || r.Client.ID != c.ID {
		return
	}
	if err := rg.Store.Delete(ctx, registrationKey(bind, group), r.version); err != nil {
		rg.Log.Warn("a client registration could not be removed", "issuer", oauth.Clean(bind, 200), "error", err)
	}
}

// forgetOf throws away the registration that an account's grant was made
// with: its server no longer knows it.
func (rg *registrar) forgetOf(ctx context.Context, a Account) {
	if g, err := rg.grants.Load(ctx, a); err == nil && g != nil {
		rg.forget(ctx, g.Bind, g.Group, g.Client)
	}
}
