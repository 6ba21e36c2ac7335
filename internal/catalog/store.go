// Package catalog keeps what servers offered, so that listing and searching need no
// connection, and the protocol version each server spoke.
//
//	kept := catalog.NewWriteBehind(store)
//	defer kept.Close()
//	h := host.New(&host.Options{Memory: kept})
//
// A write never delays a connection: WriteBehind answers reads from its queue and writes
// the queue to the store a moment later. A process that is killed may lose the last
// moment; all of it can be read from the servers again.
package catalog

import (
	"bytes"
	"context"
	"reflect"
	"time"

	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/vault"
)

// stored is the host.Memory in the store. It ignores failures: the host can ask the
// servers again.
type stored struct {
	eras     *vault.Eras
	catalogs vault.Records
}

func newStored(store vault.Records) *stored {
	return &stored{eras: vault.NewEras(store), catalogs: store}
}

// Era returns the protocol version that the server with this digest spoke.
func (m *stored) Era(ctx context.Context, digest string) (string, bool) {
	era, err := m.eras.Recall(ctx, digest)
	if err != nil {
		return "", false
	}
	return era.Protocol, true
}

// RememberEra keeps the protocol version. What is kept already is not written again:
// a write waits for the disk, and most connections find what the last one found.
func (m *stored) RememberEra(ctx context.Context, digest, version string) {
	if known, ok := m.Era(ctx, digest); ok && known == version {
		return
	}
	_ = m.eras.Remember(ctx, vault.Era{Digest: digest, Name: version, Protocol: version}) // the next connection finds it out again
}

func (m *stored) catalog(k host.Key) (*vault.Catalog, string) {
	return vault.NewCatalog(m.catalogs, k.Principal), accountName(k)
}

// Tools returns the last known catalog of k.
func (m *stored) Tools(ctx context.Context, k host.Key, digest string) (host.Catalog, bool) {
	kept, name := m.catalog(k)
	e, err := kept.Load(ctx, name)
	if err != nil {
		return host.Catalog{}, false
	}
	return host.Catalog{
		Tools: elements(e.Tools), Prompts: elements(e.Prompts), Resources: elements(e.Resources), Templates: elements(e.Templates),
		Version: e.Protocol, Info: e.ServerInfo, Capabilities: e.Capabilities, Instructions: e.Instructions,
		At: e.Updated, TTL: e.TTL, Public: e.Public, Stale: e.Digest != digest,
	}, true
}

// sameFor is how long an unchanged catalog need not be written again to say that it
// was seen, unless its own time runs out before.
const sameFor = 10 * time.Minute

// RememberTools keeps the catalog of k, unless it was kept as it is a moment ago.
func (m *stored) RememberTools(ctx context.Context, k host.Key, digest string, c host.Catalog) {
	kept, name := m.catalog(k)
	e := vault.Entry{
		Name: name, Digest: digest, Protocol: c.Version, Updated: c.At, TTL: c.TTL, Public: c.Public,
		ServerInfo: c.Info, Capabilities: c.Capabilities, Instructions: c.Instructions,
		Tools: array(c.Tools), Prompts: array(c.Prompts), Resources: array(c.Resources), Templates: array(c.Templates),
	}
	if old, err := kept.Load(ctx, name); err == nil {
		age := e.Updated.Sub(old.Updated)
		old.Updated = e.Updated
		if reflect.DeepEqual(old, e) && age >= 0 && age < sameFor && (e.TTL == 0 || age < e.TTL/2) {
			return
		}
	}
	_ = kept.Save(ctx, e) // the next connection finds it out again
}

func elements(raw []byte) [][]byte {
	var out [][]byte
	for e := jsonx.Array(raw); e.Next(); {
		out = append(out, e.Value)
	}
	return out
}

// array joins raw values; nil stays nil.
func array(items [][]byte) []byte {
	if items == nil {
		return nil
	}
	return append(append([]byte("["), bytes.Join(items, []byte(","))...), ']')
}

// accountName is "server" or "server@label".
func accountName(k host.Key) string {
	if k.Account == "" {
		return k.Server
	}
	return k.Server + "@" + k.Account
}
