package app

import (
	"context"
	"errors"
	"time"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/status"
	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/audit"
)

// Stats counts what an App did since it was opened, for metrics.
type Stats struct {
	Host  host.Stats
	Auth  auth.Stats
	Cache policy.CacheStats
	Audit audit.Stats
}

// Stats returns the counts so far.
func (h *App) Stats() Stats {
	return Stats{Host: h.hosted.Stats(), Auth: h.engine.Stats(), Cache: h.gate.CacheStats(), Audit: h.audit.Stats()}
}

// storeProbe bounds how long a store may take to answer before it counts as away.
const storeProbe = time.Second

// StoreStatus asks the store. It answers within a second.
func (h *App) StoreStatus(ctx context.Context) status.Store {
	ctx, stop := context.WithTimeout(ctx, storeProbe)
	defer stop()
	below := vault.Unsealed(h.store)
	_, err := below.Get(ctx, vault.LocalKey(vault.KindEra, "probe"))
	if err == nil || errors.Is(err, vault.ErrNotFound) {
		return status.Store{}
	}
	r := status.Store{Away: true, Problem: err.Error()}
	if errors.Is(err, context.DeadlineExceeded) {
		r.Problem = "it does not answer"
	}
	if s, ok := below.(interface{ Health() (time.Time, error) }); ok {
		r.Since, _ = s.Health()
	}
	return r
}
