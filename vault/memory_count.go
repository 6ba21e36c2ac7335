package vault

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Add implements [Counters].
func (m *Memory) Add(ctx context.Context, key Key, delta int64) (int64, error) {
	sums, err := m.AddAll(ctx, Count{Key: key, Value: delta})
	if err != nil {
		return 0, err
	}
	return sums[0], nil
}

// AddAll implements [Counters].
func (m *Memory) AddAll(ctx context.Context, deltas ...Count) ([]int64, error) {
	if err := ValidDeltas(deltas); err != nil {
		return nil, err
	}
	if err := m.lock(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	sums := make([]int64, len(deltas))
	for i, d := range deltas {
		old := m.counters[d.Key]
		sums[i] = old + d.Value
		if (d.Value > 0 && sums[i] < old) || (d.Value < 0 && sums[i] > old) {
			return nil, fmt.Errorf("add %d to %s: %w: the sum does not fit", d.Value, d.Key, ErrInvalid)
		}
	}
	for i, d := range deltas {
		m.counters[d.Key] = sums[i]
	}
	return sums, nil
}

// ValidDeltas refuses what [Counters].AddAll cannot take, with [ErrInvalid].
func ValidDeltas(deltas []Count) error {
	for i, d := range deltas {
		if err := d.Validate(); err != nil {
			return err
		}
		for _, other := range deltas[:i] {
			if other.Key == d.Key {
				return fmt.Errorf("add to %s: %w: it is named twice", d.Key, ErrInvalid)
			}
		}
	}
	return nil
}

// Counts implements [Counters].
func (m *Memory) Counts(ctx context.Context, kind, principal string) ([]Count, error) {
	if err := m.lock(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	counts := []Count{}
	for _, key := range selected(maps.Keys(m.counters), kind, principal) {
		counts = append(counts, Count{Key: key, Value: m.counters[key]})
	}
	return counts, nil
}

// Clear implements [Counters].
func (m *Memory) Clear(ctx context.Context, keys ...Key) error {
	for _, key := range keys {
		if err := key.Validate(); err != nil {
			return err
		}
	}
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	for _, key := range keys {
		delete(m.counters, key)
	}
	return nil
}

// Append implements [Audits].
func (m *Memory) Append(ctx context.Context, entries ...AuditEntry) error {
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	for _, e := range entries {
		m.auditSeq++
		e = e.Normalized()
		e.Seq = m.auditSeq
		if e.At.IsZero() {
			e.At = now()
		}
		m.audit = append(m.audit, e)
	}
	return nil
}

// Audit implements [Audits].
func (m *Memory) Audit(ctx context.Context, q AuditQuery) ([]AuditEntry, error) {
	if err := m.lock(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	limit := q.Limit
	if limit <= 0 {
		limit = DefaultAuditLimit
	}
	found := []AuditEntry{}
	for _, e := range m.audit {
		if e.Seq > q.After && (q.Principal == "" || q.Principal == e.Principal) {
			found = append(found, e)
		}
	}
	if n := len(found) - limit; n > 0 && q.Oldest {
		found = found[:limit]
	} else if n > 0 {
		found = found[n:]
	}
	for i := range found {
		found[i].Detail = slices.Clone(found[i].Detail)
	}
	return found, nil
}

// TrimAudit implements [Audits].
func (m *Memory) TrimAudit(ctx context.Context, before time.Time) (int64, error) {
	if err := m.lock(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	was := len(m.audit)
	m.audit = slices.DeleteFunc(m.audit, func(e AuditEntry) bool { return e.At.Before(before) })
	return int64(was - len(m.audit)), nil
}
