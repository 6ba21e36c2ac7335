package vault

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Entry is the last known catalog of one server: enough to search and to show
// its tools without a connection. The lists are the raw JSON the server sent,
// byte for byte; nil when it has none of that kind.
type Entry struct {
	// Name is the server, or server@label.
	Name string
	// Digest identifies the definition the lists came from; an entry of
	// another definition is stale.
	Digest string
	// Protocol is the version that was agreed on.
	Protocol string
	// Updated is when the lists were read from the server.
	Updated time.Time
	// TTL is how long the server says that its tools may be kept, 0 when it does
	// not say; Public that they may be shown to everybody.
	TTL    time.Duration
	Public bool
	// Instructions are the server's own words to agents.
	Instructions string

	ServerInfo   []byte
	Capabilities []byte
	Tools        []byte
	Prompts      []byte
	Resources    []byte
	Templates    []byte
}

// Catalog keeps the entries of one principal; what a server shows may depend on
// who is logged in.
type Catalog struct {
	store     Records
	principal string
}

// NewCatalog returns the catalog of principal, [Local] when empty.
func NewCatalog(store Records, principal string) *Catalog {
	return &Catalog{store: store, principal: orLocal(principal)}
}

// Save keeps the entry in place of an older one; a zero Updated means now.
func (c *Catalog) Save(ctx context.Context, e Entry) error {
	if e.Updated.IsZero() {
		e.Updated = now()
	}
	data, err := encodeEntry(e)
	if err != nil {
		return fmt.Errorf("save catalog of %s: %w", e.Name, err)
	}
	return overwrite(ctx, c.store, c.key(e.Name), data)
}

// Load returns the entry, or [ErrNotFound], also when what was kept is
// unreadable: the server can be asked again.
func (c *Catalog) Load(ctx context.Context, name string) (Entry, error) {
	rec, err := c.store.Get(ctx, c.key(name))
	if errors.Is(err, ErrCorrupt) {
		return Entry{}, fmt.Errorf("catalog of %s: %w", name, ErrNotFound)
	}
	if err != nil {
		return Entry{}, err
	}
	e, err := decodeEntry(rec.Data)
	if err != nil || e.Name != name {
		return Entry{}, fmt.Errorf("catalog of %s: %w", name, ErrNotFound)
	}
	return e, nil
}

// List returns all readable entries, ordered by name.
func (c *Catalog) List(ctx context.Context) ([]Entry, error) {
	recs, err := c.store.List(ctx, KindCatalog, c.principal)
	if err != nil && !errors.Is(err, ErrCorrupt) {
		return nil, err
	}
	entries := make([]Entry, 0, len(recs))
	for _, rec := range recs {
		if e, err := decodeEntry(rec.Data); err == nil && e.Name == rec.Name {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// Forget removes a server's entry; it is not an error if there was none.
func (c *Catalog) Forget(ctx context.Context, name string) error {
	return forget(ctx, c.store, c.key(name))
}

func (c *Catalog) key(name string) Key { return Key{KindCatalog, c.principal, name} }

// entryHeader is the first line of a stored entry; the raw lists follow it,
// one after the other. They are not embedded in the JSON because encoding/json
// would compact and escape them.
type entryHeader struct {
	Name     string    `json:"name"`
	Digest   string    `json:"digest,omitempty"`
	Protocol string    `json:"protocol,omitempty"`
	Updated  time.Time `json:"updated"`

	TTL          time.Duration `json:"ttl,omitempty"`
	Public       bool          `json:"public,omitempty"`
	Instructions string        `json:"instructions,omitempty"`
	// Sizes are the lengths of the parts; -1 is a part that is not there.
	Sizes []int `json:"sizes"`
}

func (e *Entry) parts() []*[]byte {
	return []*[]byte{&e.ServerInfo, &e.Capabilities, &e.Tools, &e.Prompts, &e.Resources, &e.Templates}
}

func encodeEntry(e Entry) ([]byte, error) {
	h := entryHeader{
		Name: e.Name, Digest: e.Digest, Protocol: e.Protocol, Updated: e.Updated,
		TTL: e.TTL, Public: e.Public, Instructions: e.Instructions,
	}
	var body []byte
	for _, part := range e.parts() {
		size := -1
		if *part != nil {
			size = len(*part)
		}
		h.Sizes = append(h.Sizes, size)
		body = append(body, *part...)
	}
	head, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	return append(append(head, '\n'), body...), nil
}

func decodeEntry(data []byte) (Entry, error) {
	head, body, found := bytes.Cut(data, []byte{'\n'})
	if !found {
		return Entry{}, errors.New("catalog entry without a header")
	}
	var h entryHeader
	if err := json.Unmarshal(head, &h); err != nil {
		return Entry{}, fmt.Errorf("catalog entry's header: %w", err)
	}
	e := Entry{
		Name: h.Name, Digest: h.Digest, Protocol: h.Protocol, Updated: h.Updated,
		TTL: h.TTL, Public: h.Public, Instructions: h.Instructions,
	}
	parts := e.parts()
	if len(h.Sizes) > len(parts) {
		return Entry{}, fmt.Errorf("catalog entry of %d parts, at most %d known", len(h.Sizes), len(parts))
	}
	for i, size := range h.Sizes {
		if size < 0 {
			continue
		}
		if size > len(body) {
			return Entry{}, fmt.Errorf("catalog entry is cut off: part %d of %d bytes, %d left", i, size, len(body))
		}
		*parts[i] = bytes.Clone(body[:size:size])
		body = body[size:]
	}
	if len(body) != 0 {
		return Entry{}, fmt.Errorf("catalog entry has %d bytes too many", len(body))
	}
	return e, nil
}
