package observe

import (
	"context"
	"iter"
	"log/slog"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/template"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/audit"
)

// AuditOptions steer an AuditLog.
type AuditOptions struct {
	// Settings returns the current settings. Whether calls are recorded is decided once,
	// by NewAuditLog.
	Settings func() config.Audit
	// Log receives warnings. Nil discards them.
	Log *slog.Logger
}

// AuditLog is the audit log of all processes that share a store.
type AuditLog struct {
	store    vault.Store
	settings func() config.Audit
	trail    *audit.Log // nil: this process records nothing
}

// NewAuditLog opens the audit log; it records the calls of this process unless the
// settings turn that off.
func NewAuditLog(store vault.Store, opt *AuditOptions) *AuditLog {
	a := &AuditLog{store: store, settings: opt.Settings}
	if s := opt.Settings(); s.Enabled {
		a.trail = audit.NewLog(store, &audit.Options{
			Keep: s.Keep, Log: opt.Log,
			Key: func(ctx context.Context) (audit.Key, error) { return audit.LoadKey(ctx, store) },
		})
	}
	return a
}

// Add records a call that ended.
func (a *AuditLog) Add(f policy.Finished) {
	if a.trail != nil {
		a.trail.Add(auditRecord(f))
	}
}

// Close writes the records that are not in the store yet.
func (a *AuditLog) Close() {
	if a != nil && a.trail != nil {
		a.trail.Close()
	}
}

// Stats counts what this process recorded.
func (a *AuditLog) Stats() audit.Stats {
	if a.trail == nil {
		return audit.Stats{}
	}
	return a.trail.Stats()
}

// All reads the audit log as [audit.Blocks] does: from the oldest block on, or after the
// entry with a number.
func (a *AuditLog) All(ctx context.Context, after int64) iter.Seq2[audit.Block, error] {
	return audit.Blocks(ctx, a.store, after)
}

// Last reads the newest blocks, at most n, oldest first.
func (a *AuditLog) Last(ctx context.Context, n int) ([]audit.Block, error) {
	return audit.LastBlocks(ctx, a.store, n)
}

// Verify checks the audit log, see [audit.Verify].
func (a *AuditLog) Verify(ctx context.Context, heads []audit.Head) ([]audit.Chain, error) {
	var kept time.Time
	if keep := a.settings().Keep; keep > 0 {
		kept = time.Now().Add(-keep)
	}
	key, err := audit.LoadKey(ctx, a.store)
	if err != nil {
		return nil, err
	}
	return audit.Verify(ctx, a.store, &key, heads, kept)
}

// maxAuditTarget bounds the name of what was used: a resource's URI can be anything.
const maxAuditTarget = 512

// auditRecord is a finished call as the audit log keeps it: the hash of its arguments,
// and no credentials of a resource's URI.
func auditRecord(f policy.Finished) audit.Record {
	k := f.Key.Shared()
	target := f.Tool
	if f.Method != mcp.MethodToolsCall && f.Method != mcp.MethodPromptsGet {
		target = template.MaskURI(target) // before it is cut: half a URI hides its password from us
	}
	return audit.Record{
		At: f.Began.Add(f.Took), Principal: k.Principal, Server: k.Server, Account: k.Account, Method: f.Method,
		Target: target[:min(len(target), maxAuditTarget)], Arguments: f.ArgumentsSum(), Outcome: f.Outcome, Took: f.Took, Bytes: f.Bytes,
	}
}
