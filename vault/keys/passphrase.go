package keys

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"filippo.io/age"

	"github.com/usher-mcp/usher/vault"
)

const (
	passphraseName = "passphrase"
	// passphraseVariable is read before anybody is asked, for programs that
	// run without a terminal.
	passphraseVariable = "USHER_PASSPHRASE"
	passphraseLeast    = 8 // characters of a new one
	passphraseTries    = 3
)

// PassphraseQuestion is what a person is asked.
type PassphraseQuestion struct {
	// New asks for a passphrase that is not in use yet: ask twice.
	New bool
	// Wrong says that the last answer did not open the store.
	Wrong bool
}

// passphrasePlace keeps a random master key in the ring itself, encrypted with a
// passphrase: changing the passphrase then changes one record.
//
// The encryption is age's, whose key comes from scrypt: slow and hungry for
// memory on purpose, because people's passphrases can be guessed.
type passphrasePlace struct{ keys *Keys }

func (p *passphrasePlace) trouble(kind, err error) error {
	return &Error{
		Place: passphraseName, Kind: kind, Err: err,
		Next: "run it on a terminal and type the passphrase, or set " + passphraseVariable,
	}
}

// ask gets a passphrase from the environment or from a person.
func (p *passphrasePlace) ask(ctx context.Context, q PassphraseQuestion) (vault.Secret, error) {
	opt := p.keys.opt
	if text, ok := opt.Env(passphraseVariable); ok && text != "" && !q.Wrong {
		return vault.NewSecret(text), nil
	}
	if opt.Passphrase == nil {
		return vault.Secret{}, p.trouble(vault.ErrNoKey, errors.New("nobody can be asked for it"))
	}
	phrase, err := opt.Passphrase(ctx, q)
	if err != nil {
		return vault.Secret{}, p.trouble(vault.ErrNoKey, err)
	}
	return phrase, nil
}

func (p *passphrasePlace) find(ctx context.Context, r *ring) ([]byte, error) {
	lock, ok := ringLock{}, false
	for _, l := range r.Locks {
		if l.Sealed != nil {
			lock, ok = l, true
		}
	}
	if !ok {
		return nil, elsewhere(passphraseName, r)
	}
	for try := range passphraseTries {
		phrase, err := p.ask(ctx, PassphraseQuestion{Wrong: try > 0})
		if err != nil && try > 0 {
			break // the one in the environment was wrong and nobody can be asked
		}
		if err != nil {
			return nil, err
		}
		master, err := openWithPassphrase(lock.Sealed, phrase)
		if err == nil && lockID(master) == lock.ID {
			p.remember(phrase)
			return master, nil
		}
		if !errors.Is(err, vault.ErrWrongKey) {
			return nil, &vault.CorruptError{Key: ringKeyName(), Err: fmt.Errorf("the key under the passphrase: %w", vault.ErrTampered)}
		}
	}
	return nil, p.trouble(vault.ErrWrongKey, errors.New("the passphrase is wrong"))
}

func (p *passphrasePlace) remember(phrase vault.Secret) {
	p.keys.mu.Lock()
	defer p.keys.mu.Unlock()
	p.keys.phrase = phrase
}

func (p *passphrasePlace) first(ctx context.Context) (made, error) {
	phrase, err := p.ask(ctx, PassphraseQuestion{New: true})
	if err != nil {
		return made{}, err
	}
	if utf8.RuneCountInString(phrase.Reveal()) < passphraseLeast {
		return made{}, p.trouble(vault.ErrNoKey, fmt.Errorf("a passphrase has at least %d characters", passphraseLeast))
	}
	return p.make(phrase)
}

// next makes a new master key, under the passphrase in use if there is one.
func (p *passphrasePlace) next(ctx context.Context, r *ring) (made, error) {
	p.keys.mu.Lock()
	phrase := p.keys.phrase
	p.keys.mu.Unlock()
	if r.newest().Sealed == nil || phrase.IsZero() {
		return p.first(ctx)
	}
	return p.make(phrase)
}

func (p *passphrasePlace) make(phrase vault.Secret) (made, error) {
	m := newMade(passphraseName)
	sealed, err := sealWithPassphrase(m.master, phrase, p.keys.opt.ScryptLog)
	if err != nil {
		return made{}, p.trouble(vault.ErrNoKey, err)
	}
	m.lock.Sealed = sealed
	p.remember(phrase)
	return m, nil
}

func (p *passphrasePlace) forget(context.Context, ringLock) string { return "" }

func sealWithPassphrase(master []byte, phrase vault.Secret, work int) ([]byte, error) {
	to, err := age.NewScryptRecipient(phrase.Reveal())
	if err != nil {
		return nil, err
	}
	to.SetWorkFactor(work)
	var out bytes.Buffer
	w, err := age.Encrypt(&out, to)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(master); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// openWithPassphrase returns ErrWrongKey for a wrong passphrase.
func openWithPassphrase(sealed []byte, phrase vault.Secret) ([]byte, error) {
	as, err := age.NewScryptIdentity(phrase.Reveal())
	if err != nil {
		return nil, vault.ErrWrongKey // it is empty
	}
	r, err := age.Decrypt(bytes.NewReader(sealed), as)
	if err != nil {
		if _, wrong := errors.AsType[*age.NoIdentityMatchError](err); wrong {
			return nil, vault.ErrWrongKey
		}
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, maxKeyFile))
}
