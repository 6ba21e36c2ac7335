package pins

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/usher-mcp/usher/internal/jsonx"
)

// LockName is the name of a lock file, which stands beside a project's file.
const LockName = "mcp.lock"

// lockVersion is the form of the file.
const lockVersion = 1

// maxLockBytes bounds a lock file, which is somebody else's input.
const maxLockBytes = 64 << 20

// Lock is what a project has agreed its servers' tools to be. It can be committed
// and verified without a connection. A lock never overrules a pin; it only stands
// in for one that is not there yet, see [Options].
type Lock struct {
	// Servers holds, for each server, its tools by name.
	Servers map[string]map[string]LockedTool
}

// LockedTool is one line of a lock.
type LockedTool struct {
	// Hash is the SHA-256 of the canonical definition, in hex.
	Hash string `json:"sha256"`
	// Definition is canonical, for diffs; absent when too large.
	Definition json.RawMessage `json:"definition,omitempty"`
}

// NewLock locks tools as they are now, given as raw definitions by server.
func NewLock(tools map[string][][]byte) (*Lock, error) {
	l := &Lock{Servers: map[string]map[string]LockedTool{}}
	for _, server := range slices.Sorted(maps.Keys(tools)) {
		l.Servers[server] = map[string]LockedTool{}
		for _, raw := range tools[server] {
			d := NewDefinition(raw)
			if d.canonicalize(); d.err != nil {
				return nil, fmt.Errorf("lock %s: %w", toolName(server, d.Name), d.err)
			}
			l.Servers[server][d.Name] = lockedTool(d.hash, d.form)
		}
	}
	return l, nil
}

func lockedTool(hash string, form []byte) LockedTool {
	t := LockedTool{Hash: hash}
	if len(form) <= maxKept {
		t.Definition = form
	}
	return t
}

// Lock returns the pins of the given servers, of all when none are given, as a
// lock. Tools that have gone are left out; changed ones are locked as pinned.
func (p *Store) Lock(ctx context.Context, servers ...string) (*Lock, error) {
	recs, err := p.all(ctx)
	if err != nil {
		return nil, err
	}
	l := &Lock{Servers: map[string]map[string]LockedTool{}}
	for server, rec := range recs {
		if len(servers) > 0 && !slices.Contains(servers, server) {
			continue
		}
		l.Servers[server] = map[string]LockedTool{}
		for name, pin := range rec.Tools {
			if pin.Gone == nil {
				l.Servers[server][name] = lockedTool(pin.Hash, canonicalOr(pin.Definition))
			}
		}
	}
	return l, nil
}

// Current returns the tools of each server as last seen, changed ones as they are
// now, for [Lock.Verify]. Definitions that were too large to keep are missing.
func (p *Store) Current(ctx context.Context) (map[string][][]byte, error) {
	recs, err := p.all(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string][][]byte{}
	for server, rec := range recs {
		for _, name := range slices.Sorted(maps.Keys(rec.Tools)) {
			pin := rec.Tools[name]
			current := pin.Definition
			if pin.Pending != nil {
				current = pin.Pending.Definition
			}
			if pin.Gone == nil && current != nil {
				out[server] = append(out[server], current)
			}
		}
	}
	return out, nil
}

// Encode returns the file: sorted, one line per tool, the same bytes for the same
// tools.
func (l *Lock) Encode() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\n  \"version\": %d,\n  \"servers\": {", lockVersion)
	for i, server := range slices.Sorted(maps.Keys(l.Servers)) {
		fmt.Fprintf(&b, "%s\n    %s: {", comma(i), jsonx.Quote(server))
		for j, name := range slices.Sorted(maps.Keys(l.Servers[server])) {
			t := l.Servers[server][name]
			fmt.Fprintf(&b, "%s\n      %s: {\"sha256\": %s", comma(j), jsonx.Quote(name), jsonx.Quote(t.Hash))
			if t.Definition != nil {
				fmt.Fprintf(&b, ", \"definition\": %s", canonicalOr(t.Definition))
			}
			b.WriteByte('}')
		}
		b.WriteString("\n    }")
	}
	b.WriteString("\n  }\n}\n")
	return b.Bytes()
}

func comma(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}

// WriteFile writes the lock so that a reader sees the old file or the new one,
// never half of it.
func (l *Lock) WriteFile(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write lock: %w", err)
	}
	defer os.Remove(f.Name()) // gone already when all went well
	_, err = f.Write(l.Encode())
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write lock %s: %w", path, err)
	}
	return nil
}

// ReadLock reads a lock file.
func ReadLock(path string) (*Lock, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read lock: %w", err)
	}
	if info.Size() > maxLockBytes {
		return nil, fmt.Errorf("read lock %s: %d bytes are too much", path, info.Size())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read lock: %w", err)
	}
	l, err := ParseLock(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

// ParseLock reads the text of a lock file. A file that two readers could
// understand differently is refused.
func ParseLock(data []byte) (*Lock, error) {
	if _, err := jsonx.Canonical(data); err != nil {
		return nil, fmt.Errorf("a lock must be unambiguous: %w", err)
	}
	var file struct {
		Version int                              `json:"version"`
		Servers map[string]map[string]LockedTool `json:"servers"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("no lock file: %w", err)
	}
	if file.Version != lockVersion {
		return nil, fmt.Errorf("a lock of version %d; this usher reads version %d", file.Version, lockVersion)
	}
	if file.Servers == nil {
		file.Servers = map[string]map[string]LockedTool{}
	}
	return &Lock{Servers: file.Servers}, nil
}
