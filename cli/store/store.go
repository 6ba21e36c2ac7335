package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/vault/sqlstore"
)

func newCmdStore(f *cmdutil.Factory) *cobra.Command {
	c := &cobra.Command{
		Use: "store", Short: "Repair or migrate the database", GroupID: "config",
		Long: `Logins, secrets, approvals, pins and the last known tools are kept in one store: a
SQLite file in the state directory, or the PostgreSQL database that "store" under
"usher" in the configuration names.`,
		Example: "  usher store repair\n  usher store migrate --to 'postgres://db.example/usher'",
		Args:    cmdutil.NoCommand,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newCmdStoreRepair(f, nil), newCmdStoreMigrate(f, nil))
	return c
}

type storeRepairOptions struct {
	f    *cmdutil.Factory
	json bool
}

func newCmdStoreRepair(f *cmdutil.Factory, runF func(context.Context, *storeRepairOptions) error) *cobra.Command {
	o := &storeRepairOptions{f: f}
	if runF == nil {
		runF = storeRepairRun
	}
	c := &cobra.Command{
		Use: "repair", Short: "Salvage a damaged database", Args: cmdutil.ExactArgs(0),
		Long: `Copy everything readable from a damaged SQLite file into a new one, which replaces it.
The damaged file is kept next to it. An intact file is not changed. Stop all usher
processes first.`,
		Example: "  usher store repair\n  usher store repair --json",
		RunE:    func(c *cobra.Command, _ []string) error { return runF(c.Context(), o) },
	}
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
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

func storeRepairRun(ctx context.Context, o *storeRepairOptions) error {
	f, asJSON := o.f, o.json
	source, err := storeSource(ctx, f)
	if err != nil {
		return err
	}
	done, err := sqlstore.Repair(ctx, source)
	if errors.Is(err, fs.ErrNotExist) {
		f.Note("there is no store yet at %s", f.Short(source))
		return nil
	}
	if err != nil {
		return err
	}
	if asJSON {
		return f.PrintJSON(repairJSON{
			done.Path, append([]string{}, done.Found...), done.Copy, done.Records, done.Counters, done.Audit, done.Quarantined,
		})
	}
	if len(done.Found) == 0 {
		f.Note("%s is sound; nothing was changed", f.Short(done.Path))
		return nil
	}
	for _, problem := range done.Found {
		f.Note("found: %s", cmdutil.CleanLine(problem))
	}
	f.Note("saved %s, %s and %s to %s", cmdutil.Count(done.Records, "record"), cmdutil.Count(done.Counters, "counter"), cmdutil.CountOf(done.Audit, "audit entry", "audit entries"), f.Short(done.Path))
	if done.Quarantined > 0 {
		f.Note("  %s could be read but not trusted and %s set aside in it", cmdutil.Count(done.Quarantined, "record"), map[bool]string{true: "was", false: "were"}[done.Quarantined == 1])
	}
	f.Note("  the damaged file is kept at %s", f.Short(done.Copy))
	f.Note("next: usher status, and usher login for what is missing")
	return nil
}

type storeMigrateOptions struct {
	f        *cmdutil.Factory
	from, to string
	json     bool
}

func newCmdStoreMigrate(f *cmdutil.Factory, runF func(context.Context, *storeMigrateOptions) error) *cobra.Command {
	o := &storeMigrateOptions{f: f}
	if runF == nil {
		runF = storeMigrateRun
	}
	c := &cobra.Command{
		Use: "migrate", Short: "Move the store elsewhere, or to another schema", Args: cmdutil.ExactArgs(0),
		Long: `With a location, copy everything from one store to another: a SQLite file or a
postgres:// URL. The source is not changed; usher verifies the copy, and running the
command again copies what is newer. Stop all usher processes first, so that nothing is
written to the old store afterwards. Placeholders keep a password out of the process
list: --to '${env:DATABASE_URL}'.

With a number, migrate this store to that version of the schema: only needed before
going back to an older version of usher.`,
		Example: `  usher store migrate --to 'postgres://usher@db.example/usher'
  usher store migrate --from old.db --to '${env:DATABASE_URL}'
  usher store migrate --to 1`,
		RunE: func(c *cobra.Command, _ []string) error { return runF(c.Context(), o) },
	}
	c.Flags().StringVar(&o.from, "from", "", "copy from this `store` (default: the one in use)")
	c.Flags().StringVar(&o.to, "to", "", "copy to this `store`, or the number of a schema")
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return c
}

func storeMigrateRun(ctx context.Context, o *storeMigrateOptions) error {
	f := o.f
	if o.to == "" {
		return cmdutil.Usagef("usher store migrate --to postgres://…\nusher store migrate --to VERSION", "usher store migrate needs --to")
	}
	if version, err := strconv.Atoi(o.to); err == nil {
		if o.from != "" {
			return cmdutil.Usagef("leave out --from", "a schema is changed in place")
		}
		return storeSchema(ctx, f, version)
	}
	from, err := storePlace(ctx, f, o.from)
	if err != nil {
		return err
	}
	to, err := storePlace(ctx, f, o.to)
	if err != nil {
		return err
	}
	if from == to {
		return cmdutil.Usagef("usher store migrate --to ANOTHER", "the source and the target are the same store")
	}
	done, err := copyStore(ctx, from, to)
	if err != nil {
		return err
	}
	if o.json {
		return f.PrintJSON(map[string]int{"records": done.Records, "counters": done.Counters, "audit": done.Audit, "damaged": len(done.Damaged)})
	}
	f.Note("copied %s, %s and %s", cmdutil.Count(done.Records, "record"), cmdutil.Count(done.Counters, "counter"), cmdutil.CountOf(done.Audit, "audit entry", "audit entries"))
	for _, key := range done.Damaged {
		f.Note("  %s is damaged and stayed behind", key)
	}
	shown := o.to
	if sqlstore.IsPostgres(shown) {
		shown = withoutPassword(shown)
	}
	f.Note("next: set \"store\": %q under \"usher\" in your configuration, or USHER_STORE", shown)
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

func storeSchema(ctx context.Context, f *cmdutil.Factory, version int) error {
	source, err := storeSource(ctx, f)
	if err != nil {
		return err
	}
	if err := sqlstore.Migrate(ctx, source, version); err != nil {
		return err
	}
	f.Note("the store has schema %d", version)
	if version < sqlstore.SchemaVersion() {
		f.Note("  this usher brings it back to %d as soon as it opens it; use the older one now", sqlstore.SchemaVersion())
	}
	return nil
}

// storeSource is the store that the configuration names.
func storeSource(ctx context.Context, f *cmdutil.Factory) (string, error) {
	cfg, err := f.Config()
	if err != nil {
		return "", err
	}
	return app.StoreSource(ctx, cfg, f.IO.System)
}

// storePlace reads --from and --to: empty is the store in use.
func storePlace(ctx context.Context, f *cmdutil.Factory, place string) (string, error) {
	if place == "" {
		return storeSource(ctx, f)
	}
	cmdutil.WarnOfPassword(f, place)
	source, err := app.StoreSource(ctx, &config.Config{Usher: config.Settings{Store: place}}, f.IO.System)
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
