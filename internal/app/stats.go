package app

import (
	"context"
	"errors"
	"time"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/audit"
)

// Stats counts what a host did since it was opened, for metrics.
type Stats struct {
	Host  host.Stats
	Auth  auth.Stats
	Cache policy.CacheStats
	Audit audit.Stats
}

// Stats returns the counts so far.
func (h *App) Stats() Stats {
	s := Stats{Host: h.hosted.Stats(), Auth: h.engine.Stats(), Cache: h.gate.CacheStats()}
	if h.trail != nil {
		s.Audit = h.trail.Stats()
	}
	return s
}

// StoreReport says whether the store can be reached. While it is away, calls with
// logins that are still good go on, and nothing is lost.
type StoreReport struct {
	Away    bool      `json:"away"`
	Since   time.Time `json:"since,omitzero"`
	Problem string    `json:"problem,omitempty"`
}

// storeProbe bounds how long a store may take to answer before it counts as away.
const storeProbe = time.Second

// StoreReport asks the store. It answers within a second.
func (h *App) StoreReport(ctx context.Context) StoreReport {
	ctx, stop := context.WithTimeout(ctx, storeProbe)
	defer stop()
	below := vault.Unsealed(h.store)
	_, err := below.Get(ctx, vault.LocalKey(vault.KindEra, "probe"))
	if err == nil || errors.Is(err, vault.ErrNotFound) {
		return StoreReport{}
	}
	r := StoreReport{Away: true, Problem: err.Error()}
	if errors.Is(err, context.DeadlineExceeded) {
		r.Problem = "it does not answer"
	}
	if s, ok := below.(interface{ Health() (time.Time, error) }); ok {
		r.Since, _ = s.Health()
	}
	return r
}
