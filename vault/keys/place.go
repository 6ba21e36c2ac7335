package keys

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/usher-mcp/usher/vault"
)

// place is somewhere a master key can be kept.
type place interface {
	// find returns the master key that fits one of the ring's locks.
	find(ctx context.Context, r *ring) ([]byte, error)
	// first returns the master key for a store that has none, in its place.
	first(ctx context.Context) (made, error)
	// next returns a master key to replace the ring's. It is in its place once
	// put was called.
	next(ctx context.Context, r *ring) (made, error)
	// forget removes the key of a lock that opens nothing any more. It returns
	// a remark when that is left to a person.
	forget(ctx context.Context, l ringLock) string
}

// made is a master key and how it is told of in the ring.
type made struct {
	lock   ringLock
	master []byte
	put    func(ctx context.Context) error
}

// newMade makes a random master key.
func newMade(name string) made { return madeOf(name, newKey()) }

func madeOf(name string, master []byte) made {
	return made{
		lock: ringLock{ID: lockID(master), Place: name, Created: now()}, master: master,
		put: func(context.Context) error { return nil },
	}
}

// place reads a setting.
func (k *Keys) place(setting string) (place, error) {
	if k.opt.Refuse != nil {
		return nil, &Error{Place: setting, Kind: vault.ErrNoKey, Err: k.opt.Refuse, Next: "fix the configuration; `usher doctor` shows what is wrong"}
	}
	kind, rest, _ := strings.Cut(setting, ":")
	switch {
	case setting == "auto" && k.opt.File == "", setting == "keychain":
		return &keychainPlace{k.chain}, nil
	case setting == "auto":
		return &autoPlace{keychain: &keychainPlace{k.chain}, file: &filePlace{path: k.opt.File, ours: true}}, nil
	case setting == "passphrase":
		return &passphrasePlace{k}, nil
	case kind == "file" && rest != "":
		return &filePlace{path: rest}, nil
	case kind == "env" && rest != "":
		return &envPlace{name: rest, env: k.opt.Env}, nil
	}
	// What it is instead is not shown: it may be the key itself.
	return nil, fmt.Errorf("%w: the setting of the key must be auto, keychain, passphrase, file:PATH or env:NAME", vault.ErrInvalid)
}

// elsewhere explains a ring that none of a place's keys opens.
func elsewhere(name string, r *ring) error {
	var places []string
	for _, l := range r.Locks {
		if l.Place != name && !slices.Contains(places, l.Place) {
			places = append(places, l.Place)
		}
	}
	e := &Error{Place: name, Kind: vault.ErrWrongKey, Next: "put the right key back; `usher key show` says which one it was"}
	if len(places) > 0 {
		e.Err = fmt.Errorf("it was encrypted with a key kept in %s", strings.Join(places, " and "))
		e.Next = fmt.Sprintf("set \"key\": %q under \"usher\" in the configuration, or USHER_KEY=%s", places[len(places)-1], places[len(places)-1])
	}
	return e
}

// autoPlace is the keychain where there is one that answers, else a file.
type autoPlace struct {
	keychain *keychainPlace
	file     *filePlace
}

// find looks at the file first: that costs nothing and asks nobody. Other places
// that the ring may name are not followed, because someone who can write the store
// could name one of theirs.
func (p *autoPlace) find(ctx context.Context, r *ring) ([]byte, error) {
	master, fileErr := p.file.find(ctx, r)
	if fileErr == nil {
		return master, nil
	}
	if slices.ContainsFunc(r.Locks, func(l ringLock) bool { return l.Entry != "" }) {
		return p.keychain.find(ctx, r)
	}
	if slices.ContainsFunc(r.Locks, func(l ringLock) bool { return l.Place == p.file.name() }) {
		return nil, fileErr
	}
	if errors.Is(fileErr, vault.ErrWrongKey) {
		return nil, fileErr
	}
	return nil, elsewhere("auto", r)
}

// first takes a file that is there already: it was made for this store.
func (p *autoPlace) first(ctx context.Context) (made, error) {
	if _, err := readKeyFile(p.file.path); !errors.Is(err, fs.ErrNotExist) {
		return p.file.first(ctx)
	}
	m, err := p.keychain.first(ctx)
	if err == nil {
		return m, nil
	}
	m, fileErr := p.file.first(ctx)
	if fileErr != nil {
		return made{}, fmt.Errorf("%w; nor in the keychain: %w", fileErr, err)
	}
	return m, nil
}

// next stays where the key is now.
func (p *autoPlace) next(ctx context.Context, r *ring) (made, error) {
	if r.newest().Entry != "" {
		return p.keychain.next(ctx, r)
	}
	return p.file.next(ctx, r)
}

func (p *autoPlace) forget(ctx context.Context, l ringLock) string {
	if l.Entry != "" {
		return p.keychain.forget(ctx, l)
	}
	return p.file.forget(ctx, l)
}

// keychainPlace keeps the key in the operating system's keychain, every key
// under a name of its own: the old one is there until the new one is in use.
type keychainPlace struct{ chain *timedKeychain }

const keychainName = "keychain"

func keychainTrouble(err error) error {
	return &Error{
		Place: keychainName, Kind: vault.ErrNoKey, Err: err,
		Next: "unlock the keychain and try again, or keep the key elsewhere: \"key\" in the configuration takes file:PATH, env:NAME and passphrase",
	}
}

func (p *keychainPlace) find(ctx context.Context, r *ring) ([]byte, error) {
	asked := false
	for _, l := range slices.Backward(r.Locks) {
		if l.Entry == "" {
			continue
		}
		asked = true
		text, err := p.chain.get(ctx, l.Entry)
		if errors.Is(err, vault.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, keychainTrouble(err)
		}
		master, err := parseKey([]byte(text))
		if err == nil && lockID(master) == l.ID {
			return master, nil
		}
	}
	if asked {
		return nil, &Error{
			Place: keychainName, Kind: vault.ErrNoKey, Err: fmt.Errorf("the keychain has no entry %q", r.newest().Entry),
			Next: "restore the entry of usher from a backup of the keychain, or log in again",
		}
	}
	return nil, elsewhere(keychainName, r)
}

func (p *keychainPlace) first(ctx context.Context) (made, error) {
	m := p.make()
	return m, m.put(ctx)
}

func (p *keychainPlace) next(context.Context, *ring) (made, error) { return p.make(), nil }

func (p *keychainPlace) make() made {
	m := newMade(keychainName)
	m.lock.Entry = "store key " + rand.Text()[:12]
	m.put = func(ctx context.Context) error {
		text := encodeKey(m.master)
		if err := p.chain.set(ctx, m.lock.Entry, text); err != nil {
			return keychainTrouble(err)
		}
		back, err := p.chain.get(ctx, m.lock.Entry)
		if err == nil && back != text {
			err = errors.New("what was put in did not come back")
		}
		if err != nil {
			return keychainTrouble(err)
		}
		return nil
	}
	return m
}

func (p *keychainPlace) forget(ctx context.Context, l ringLock) string {
	if l.Entry == "" {
		return ""
	}
	if err := p.chain.remove(ctx, l.Entry); err != nil && !errors.Is(err, vault.ErrNotFound) {
		return fmt.Sprintf("the old entry %q could not be removed from the keychain; it is no longer used", l.Entry)
	}
	return ""
}

// envPlace is a variable of the environment. It is set by others, so it can be
// changed only by them.
type envPlace struct {
	name string
	env  func(string) (string, bool)
}

func (p *envPlace) title() string { return "env:" + p.name }

func (p *envPlace) read() ([]byte, error) {
	text, ok := p.env(p.name)
	err := errors.New("the variable is not set")
	if ok {
		var master []byte
		if master, err = parseKey([]byte(text)); err == nil {
			return master, nil
		}
	}
	return nil, &Error{
		Place: p.title(), Kind: vault.ErrNoKey, Err: err,
		Next: fmt.Sprintf("set %s to the key: 32 bytes in base64, as `openssl rand -base64 32` prints a new one", p.name),
	}
}

func (p *envPlace) find(_ context.Context, r *ring) ([]byte, error) {
	master, err := p.read()
	if err != nil {
		return nil, err
	}
	if !r.has(lockID(master)) {
		return nil, elsewhere(p.title(), r)
	}
	return master, nil
}

func (p *envPlace) first(context.Context) (made, error) {
	master, err := p.read()
	if err != nil {
		return made{}, err
	}
	return madeOf(p.title(), master), nil
}

// next is the variable's key, which may be the one in use: then only the data
// key is new.
func (p *envPlace) next(ctx context.Context, _ *ring) (made, error) { return p.first(ctx) }

func (p *envPlace) forget(context.Context, ringLock) string {
	return "the key in " + p.title() + " is no longer used; remove the variable"
}

// encodeKey writes a key as one line.
func encodeKey(key []byte) string { return base64.StdEncoding.EncodeToString(key) }

// parseKey reads a key: 32 bytes as they are, in hexadecimal or in base64.
func parseKey(text []byte) ([]byte, error) {
	if len(text) == keySize {
		return append([]byte{}, text...), nil
	}
	s := strings.TrimSpace(string(text))
	if raw, err := hex.DecodeString(s); err == nil && len(raw) == keySize {
		return raw, nil
	}
	s = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(s), "=")
	if raw, err := base64.RawStdEncoding.DecodeString(s); err == nil && len(raw) == keySize {
		return raw, nil
	}
	return nil, fmt.Errorf("not a key of %d bytes in base64 or hexadecimal", keySize)
}
