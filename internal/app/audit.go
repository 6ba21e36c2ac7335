package app

import (
	"context"
	"iter"
	"time"

	"github.com/usher-mcp/usher/config/template"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/vault/audit"
)

// maxAuditTarget bounds the name of what was used: a resource's URI can be anything.
const maxAuditTarget = 512

// act is a finished call as the audit log keeps it: the hash of its arguments, and no
// credentials of a resource's URI.
func act(f policy.Finished) audit.Record {
	k := callerKey(f.Key)
	target := f.Tool
	if f.Method != mcp.MethodToolsCall && f.Method != mcp.MethodPromptsGet {
		target = template.MaskURI(target) // before it is cut: half a URI hides its password from us
	}
	return audit.Record{
		At: f.Began.Add(f.Took), Principal: k.Principal, Server: k.Server, Account: k.Account, Method: f.Method,
		Target: target[:min(len(target), maxAuditTarget)], Arguments: f.ArgumentsSum(), Outcome: f.Outcome, Took: f.Took, Bytes: f.Bytes,
	}
}

// openTrail begins the audit trail of this host, unless the settings say no.
func (h *App) openTrail() {
	if s := h.Config().Usher.Audit; s.Enabled {
		h.trail = audit.NewLog(h.store, &audit.Options{
			Keep: s.Keep, Log: h.log,
			Key: func(ctx context.Context) (audit.Key, error) { return audit.LoadKey(ctx, h.store) },
		})
	}
}

// Audit is the audit trail of all processes that share the store, as [audit.Blocks]
// reads it: from the oldest block on, or after the entry with a number.
func (h *App) Audit(ctx context.Context, after int64) iter.Seq2[audit.Block, error] {
	return audit.Blocks(ctx, h.store, after)
}

// LastAudit reads the newest blocks of the audit trail, at most n, oldest first.
func (h *App) LastAudit(ctx context.Context, n int) ([]audit.Block, error) {
	return audit.LastBlocks(ctx, h.store, n)
}

// VerifyAudit checks the audit trail, see [audit.Verify].
func (h *App) VerifyAudit(ctx context.Context, heads []audit.Head) ([]audit.Chain, error) {
	var kept time.Time
	if keep := h.Config().Usher.Audit.Keep; keep > 0 {
		kept = time.Now().Add(-keep)
	}
	key, err := audit.LoadKey(ctx, h.store)
	if err != nil {
		return nil, err
	}
	return audit.Verify(ctx, h.store, &key, heads, kept)
}
