package app

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/keys"
	"github.com/usher-mcp/usher/vault/sqlstore"
)

// keyFile is where the key is kept in the state directory when there is no
// keychain.
const keyFile = "usher.key"

// Prompt asks the person who uses the program. What is nil cannot be asked, and
// whatever needs it fails with the command that sets it.
type Prompt struct {
	// Passphrase asks for the passphrase of the store.
	Passphrase func(ctx context.Context, q keys.PassphraseQuestion) (vault.Secret, error)
	// Input asks for the value of an ${input:ID} that was never given. The
	// answer is kept as a secret.
	Input func(ctx context.Context, in config.Input) (vault.Secret, error)
}

// StoreSource is the store that a configuration names, as sqlstore.Open takes it:
// by default a file in the state directory.
func StoreSource(ctx context.Context, cfg *config.Config, sys config.System) (string, error) {
	dirs, err := config.FindDirs(sys)
	if err != nil {
		return "", err
	}
	set, err := placeSettings(ctx, cfg, sys, dirs)
	if err != nil {
		return "", err
	}
	return set.Store, nil
}

// placeSettings fills in where the store and its key are kept.
func placeSettings(ctx context.Context, cfg *config.Config, sys config.System, dirs config.Dirs) (config.Settings, error) {
	sys = sys.WithDefaults()
	set, err := config.Settings{Store: cfg.Usher.Store, Key: cfg.Usher.Key}.Resolve(
		ctx, config.Lookup{Env: sys.LookupEnv}, dirs.Config)
	if err != nil {
		return config.Settings{}, err
	}
	set.Store = cmp.Or(homePath(set.Store, sys), filepath.Join(dirs.State, "usher.db"))
	if err := sqlstore.CheckSource(set.Store); err != nil {
		return config.Settings{}, fmt.Errorf("usher.store: %w", err)
	}
	if path, ok := strings.CutPrefix(set.Key, "file:"); ok {
		path = homePath(path, sys)
		if !filepath.IsAbs(path) {
			return config.Settings{}, fmt.Errorf("usher.key: %s must be a whole path, or start with ~/", config.Visible(set.Key))
		}
		set.Key = "file:" + path
	}
	return set, nil
}

func homePath(path string, sys config.System) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok && sys.Home != "" {
		return filepath.Join(sys.Home, rest)
	}
	return path
}

// openStore opens the store that the configuration names, sealed with the key it
// names; shared says whether other machines may use it too. The key itself is looked
// for when the first record is written or found.
func openStore(ctx context.Context, o *Options, dirs config.Dirs) (store vault.Store, k *keys.Keys, shared bool, err error) {
	sys := o.Load.System.WithDefaults()
	set, err := placeSettings(ctx, o.Config, sys, dirs)
	if err != nil {
		return nil, nil, false, err
	}
	below, err := sqlstore.Open(ctx, set.Store, &sqlstore.Options{Exits: o.ExitsAfterClose})
	if err != nil {
		return nil, nil, false, err
	}
	k = keys.New(below, keys.Options{
		Setting: set.Key, Refuse: o.Config.Usher.Mistaken("store", "key"), File: filepath.Join(dirs.State, keyFile), Keychain: o.Keychain,
		Env: sys.LookupEnv, Passphrase: o.Prompt.Passphrase, Shared: sqlstore.IsPostgres(set.Store),
	})
	return keys.Sealed(below, k), k, sqlstore.IsPostgres(set.Store), nil
}

// Secrets are the values of ${secret:NAME} and ${input:ID}.
func (h *App) Secrets() *vault.Secrets { return vault.NewSecrets(h.store, h.principal) }

// Keys are the keys of the store: where the master key is kept, and rotation. Nil
// when the store was given with Options.Store.
func (h *App) Keys() *keys.Keys { return h.keys }
