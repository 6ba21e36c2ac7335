package sqlstore

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/usher-mcp/usher/vault"
)

const (
	// postgresWait is how long one wait for a notification lasts; between two
	// it is asked whether anybody still listens.
	postgresWait = 5 * time.Second
	// postgresCompare is how often everything is compared although nothing was
	// notified: a hint may be lost between a commit and its notification.
	postgresCompare = time.Minute

	firstReconnect   = 250 * time.Millisecond
	longestReconnect = 5 * time.Second
)

// postgresFeed listens on a connection of its own and makes a new one when it
// breaks.
type postgresFeed struct {
	cfg      *pgx.ConnConfig
	self     string
	conn     *pgx.Conn // nil while broken
	delay    time.Duration
	compared time.Time
}

func (f *postgresFeed) connect(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, f.cfg)
	if err != nil {
		return err
	}
	var channel string
	if err = conn.QueryRow(ctx, `SELECT `+postgresChannel).Scan(&channel); err == nil {
		_, err = conn.Exec(ctx, `LISTEN `+pgx.Identifier{channel}.Sanitize())
	}
	if err != nil {
		closeConn(conn)
		return err
	}
	f.conn, f.delay, f.compared = conn, firstReconnect, time.Now()
	return nil
}

func (f *postgresFeed) next(ctx context.Context) (vault.Change, bool, error) {
	if f.conn == nil {
		return vault.Change{}, true, f.reconnect(ctx)
	}
	if time.Since(f.compared) > postgresCompare {
		f.compared = time.Now()
		return vault.Change{}, true, nil
	}
	waitCtx, cancel := context.WithTimeout(ctx, postgresWait)
	defer cancel()
	n, err := f.conn.WaitForNotification(waitCtx)
	switch {
	case err == nil:
		return f.decode(n), false, nil
	case pgconn.Timeout(err) && !f.conn.IsClosed():
		return vault.Change{}, false, nil
	}
	closeConn(f.conn)
	f.conn = nil
	return vault.Change{}, false, err
}

// reconnect waits a little longer every time; after it everything is compared,
// because what was notified meanwhile is lost.
func (f *postgresFeed) reconnect(ctx context.Context) error {
	timer := time.NewTimer(f.delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	f.delay = min(2*f.delay, longestReconnect)
	return f.connect(ctx)
}

// decode returns the zero Change for our own notices, which were told already,
// and for what is no notice of ours.
func (f *postgresFeed) decode(n *pgconn.Notification) vault.Change {
	var m notice
	if json.Unmarshal([]byte(n.Payload), &m) != nil || m.Sender == f.self {
		return vault.Change{}
	}
	return vault.Change{Key: vault.Key{Kind: m.Kind, Principal: m.Principal, Name: m.Name}, Version: m.Version}
}

func (f *postgresFeed) close() {
	if f.conn != nil {
		closeConn(f.conn)
	}
}

func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // a polite goodbye; the socket is closed anyway
}
