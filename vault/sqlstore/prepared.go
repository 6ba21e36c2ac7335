package sqlstore

import (
	"context"
	"database/sql"
	"sync"
)

// prepared keeps the statements that read records, ready to run: to read such a
// statement takes SQLite longer than to run it. They are closed with the database.
type prepared struct {
	mu  sync.Mutex // guards all
	all map[string]*sql.Stmt
}

// query runs a statement of which there are few different ones.
func (s *Store) query(ctx context.Context, statement string, args ...any) (*sql.Rows, error) {
	if s.path == "" { // the other driver does the same by itself
		return s.db.QueryContext(ctx, s.d.sql(statement), args...)
	}
	ready, err := s.reads.get(ctx, s, statement)
	if err != nil {
		return nil, err
	}
	return ready.QueryContext(ctx, args...)
}

func (p *prepared) get(ctx context.Context, s *Store, statement string) (*sql.Stmt, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ready := p.all[statement]; ready != nil {
		return ready, nil
	}
	ready, err := s.db.PrepareContext(ctx, s.d.sql(statement))
	if err != nil {
		return nil, err
	}
	if p.all == nil {
		p.all = map[string]*sql.Stmt{}
	}
	p.all[statement] = ready
	return ready, nil
}
