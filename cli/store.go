package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/vault/sqlstore"
)

func newCmdStore(a *factory) *cobra.Command {
	c := &cobra.Command{
		Use: "store", Short: "Repair or move what usher keeps", GroupID: "config",
		Long: `Logins, secrets, approvals, pins and the last known tools are kept in one store: a
SQLite file in the state directory, or the PostgreSQL database that "store" under
"usher" in the configuration names.`,
		Example: "  usher store repair\n  usher store migrate --to 'postgres://db.example/usher'",
		Args:    noCommand,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newCmdStoreRepair(a), newCmdStoreMigrate(a))
	return c
}

func newCmdStoreRepair(a *factory) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "repair", Short: "Save what can be read of a damaged file", Args: exactly(0),
		Long: `Read all that can be read of a damaged SQLite file into a new one, which takes its
place. The damaged file is kept beside it. A sound file is left alone. Stop all
running ushers first.`,
		Example: "  usher store repair\n  usher store repair --json",
		RunE:    func(c *cobra.Command, _ []string) error { return a.storeRepair(c.Context(), asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

type repairJSON struct {
	Path        string   `json:"path"`
	Found       []string `json:"found"`
	Copy        string   `json:"copy,omitempty"`
	Records     int      `json:"records"`
	Counters    int      `json:"counters"`
	Audit       int      `json:"audit"`
	Quarantined int      `json:"quarantined"`
}

func (a *factory) storeRepair(ctx context.Context, asJSON bool) error {
	source, err := a.storeSource(ctx)
	if err != nil {
		return err
	}
	done, err := sqlstore.Repair(ctx, source)
	if errors.Is(err, fs.ErrNotExist) {
		a.note("there is no store yet at %s", a.short(source))
		return nil
	}
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(repairJSON{
			done.Path, append([]string{}, done.Found...), done.Copy, done.Records, done.Counters, done.Audit, done.Quarantined,
		})
	}
	if len(done.Found) == 0 {
		a.note("%s is sound; nothing was changed", a.short(done.Path))
		return nil
	}
	for _, problem := range done.Found {
		a.note("found: %s", cleanLine(problem))
	}
	a.note("saved %s, %s and %s to %s", count(done.Records, "record"), count(done.Counters, "counter"), countOf(done.Audit, "audit entry", "audit entries"), a.short(done.Path))
	if done.Quarantined > 0 {
		a.note("  %s could be read but not trusted and %s set aside in it", count(done.Quarantined, "record"), map[bool]string{true: "was", false: "were"}[done.Quarantined == 1])
	}
	a.note("  the damaged file is kept at %s", a.short(done.Copy))
	a.note("next: usher status, and usher login for what is missing")
	return nil
}

type storeMigrateOptions struct {
	from, to string
	json     bool
}

func newCmdStoreMigrate(a *factory) *cobra.Command {
	var o storeMigrateOptions
	c := &cobra.Command{
		Use: "migrate", Short: "Move the store elsewhere, or to another schema", Args: exactly(0),
		Long: `With a place, copy everything from one store to another: a SQLite file or a
postgres:// address. The source stays as it is; what arrived is compared, and
running it again brings over what is newer. Stop all running ushers first, so that
nothing is written to the old one afterwards. Placeholders keep a password out of
the process list: --to '${env:DATABASE_URL}'.

With a number, bring this store to that version of the schema: only needed before
going back to an older usher.`,
		Example: `  usher store migrate --to 'postgres://usher@db.example/usher'
  usher store migrate --from old.db --to '${env:DATABASE_URL}'
  usher store migrate --to 1`,
		RunE: func(c *cobra.Command, _ []string) error { return a.storeMigrate(c.Context(), o) },
	}
	c.Flags().StringVar(&o.from, "from", "", "copy from this `store` (default: the one in use)")
	c.Flags().StringVar(&o.to, "to", "", "copy to this `store`, or the number of a schema")
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return c
}

func (a *factory) storeMigrate(ctx context.Context, o storeMigrateOptions) error {
	if o.to == "" {
		return usagef("usher store migrate --to postgres://…\nusher store migrate --to VERSION", "usher store migrate needs --to")
	}
	if version, err := strconv.Atoi(o.to); err == nil {
		if o.from != "" {
			return usagef("leave out --from", "a schema is changed in place")
		}
		return a.storeSchema(ctx, version)
	}
	from, err := a.storePlace(ctx, o.from)
	if err != nil {
		return err
	}
	to, err := a.storePlace(ctx, o.to)
	if err != nil {
		return err
	}
	if from == to {
		return usagef("usher store migrate --to ANOTHER", "the source and the target are the same store")
	}
	done, err := copyStore(ctx, from, to)
	if err != nil {
		return err
	}
	if o.json {
		return a.printJSON(map[string]int{"records": done.Records, "counters": done.Counters, "audit": done.Audit, "damaged": len(done.Damaged)})
	}
	a.note("copied %s, %s and %s", count(done.Records, "record"), count(done.Counters, "counter"), countOf(done.Audit, "audit entry", "audit entries"))
	for _, key := range done.Damaged {
		a.note("  %s is damaged and stayed behind", key)
	}
	shown := o.to
	if sqlstore.IsPostgres(shown) {
		shown = withoutPassword(shown)
	}
	a.note("next: set \"store\": %q under \"usher\" in your configuration, or USHER_STORE", shown)
	return nil
}

func copyStore(ctx context.Context, from, to string) (sqlstore.Copied, error) {
	src, err := sqlstore.Open(ctx, from, nil)
	if err != nil {
		return sqlstore.Copied{}, err
	}
	defer func() { _ = src.Close() }() // only read from
	dst, err := sqlstore.Open(ctx, to, nil)
	if err != nil {
		return sqlstore.Copied{}, err
	}
	done, err := sqlstore.Copy(ctx, src, dst)
	return done, errors.Join(err, dst.Close())
}

func (a *factory) storeSchema(ctx context.Context, version int) error {
	source, err := a.storeSource(ctx)
	if err != nil {
		return err
	}
	if err := sqlstore.Migrate(ctx, source, version); err != nil {
		return err
	}
	a.note("the store has schema %d", version)
	if version < sqlstore.SchemaVersion() {
		a.note("  this usher brings it back to %d as soon as it opens it; use the older one now", sqlstore.SchemaVersion())
	}
	return nil
}

// storeSource is the store that the configuration names.
func (a *factory) storeSource(ctx context.Context) (string, error) {
	cfg, err := a.config()
	if err != nil {
		return "", err
	}
	return app.StoreSource(ctx, cfg, a.io.System)
}

// warnOfPassword says that the arguments of a process are no secret.
func (a *factory) warnOfPassword(place string) {
	if u, err := url.Parse(place); err == nil && sqlstore.IsPostgres(place) {
		if _, given := u.User.Password(); given {
			a.note("usher: a password in an argument can be seen by others; '${env:NAME}' keeps it out")
		}
	}
}

// storePlace reads --from and --to: empty is the store in use.
func (a *factory) storePlace(ctx context.Context, place string) (string, error) {
	if place == "" {
		return a.storeSource(ctx)
	}
	a.warnOfPassword(place)
	source, err := app.StoreSource(ctx, &config.Config{Usher: config.Settings{Store: place}}, a.io.System)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", config.Visible(withoutPassword(place)), err)
	}
	return source, nil
}

// withoutPassword is an address that can be shown.
func withoutPassword(place string) string {
	u, err := url.Parse(place)
	switch {
	case err != nil && sqlstore.IsPostgres(place):
		return "postgres://…"
	case err != nil || u.User == nil:
		return place
	}
	return u.Redacted()
}
