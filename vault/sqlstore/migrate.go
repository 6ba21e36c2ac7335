package sqlstore

import (
	"context"
	"fmt"

	"github.com/usher-mcp/usher/vault"
)

// SchemaVersion is the schema this program reads and writes.
func SchemaVersion() int { return len(migrations()) }

// Migrate brings the store that source names to the schema version target,
// forwards or backwards, all or nothing. Going back is for returning to an
// older program and drops what the newer schema added.
func Migrate(ctx context.Context, source string, target int) error {
	if target < 0 || target > SchemaVersion() {
		return fmt.Errorf("migrate to schema %d: this program knows 0 to %d", target, SchemaVersion())
	}
	s, err := connect(ctx, source, nil)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // committed is committed
	return s.migrate(ctx, target)
}

// upgrade is the fast path of Open: one look at the version, and nothing else
// when it is the right one.
func (s *Store) upgrade(ctx context.Context) error {
	var version int
	err := s.retry(ctx, "read the schema version", func() (err error) {
		version, err = s.d.version(ctx, s.db)
		return err
	})
	if err != nil {
		return err
	}
	if version == SchemaVersion() {
		return nil
	}
	if version > SchemaVersion() {
		return s.newer(version)
	}
	return s.migrate(ctx, SchemaVersion())
}

// migrate takes the steps to target in one transaction. It asks for the version
// again inside it: another process may have been faster.
func (s *Store) migrate(ctx context.Context, target int) error {
	return s.write(ctx, careFull, fmt.Sprintf("migrate to schema %d", target), func(tx querier) error {
		if s.d.guard != "" {
			if _, err := tx.ExecContext(ctx, s.d.guard); err != nil {
				return err
			}
		}
		version, err := s.d.version(ctx, tx)
		if err != nil {
			return err
		}
		if version > SchemaVersion() {
			return s.newer(version)
		}
		for _, statement := range s.route(version, target) {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("from schema %d: %w", version, err)
			}
		}
		if version == target {
			return nil
		}
		return s.d.setVersion(ctx, tx, target)
	})
}

// route lists the statements that lead from one version to another.
func (s *Store) route(from, to int) (statements []string) {
	all := migrations()
	for v := from; v < to; v++ {
		up, _ := s.d.steps(all[v])
		statements = append(statements, up...)
	}
	for v := from; v > to; v-- {
		_, down := s.d.steps(all[v-1])
		statements = append(statements, down...)
	}
	return statements
}

func (s *Store) newer(version int) error {
	return fmt.Errorf("%w: %s has schema %d, this usher knows %d (upgrade usher, or migrate the store to schema %d with the newer version)",
		vault.ErrNewer, s.where, version, SchemaVersion(), SchemaVersion())
}
