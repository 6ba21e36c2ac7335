package keys

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	oskeyring "github.com/zalando/go-keyring"

	"github.com/usher-mcp/usher/vault"
)

// Keychain is where the operating system keeps passwords. Get and Remove return
// [vault.ErrNotFound] when there is no such entry. A call may never return:
// a caller gives it a timeout.
type Keychain interface {
	Get(service, entry string) (string, error)
	Set(service, entry, secret string) error
	Remove(service, entry string) error
}

// keychainService is what entries are listed under.
const keychainService = "usher"

// SystemKeychain is the keychain of this machine: Keychain on macOS, Credential
// Manager on Windows, the Secret Service elsewhere.
func SystemKeychain() Keychain { return systemKeychain{} }

type systemKeychain struct{}

func (systemKeychain) Get(service, entry string) (string, error) {
	if err := keychainThere(); err != nil {
		return "", err
	}
	text, err := oskeyring.Get(service, entry)
	return text, keychainError(err)
}

func (systemKeychain) Set(service, entry, secret string) error {
	if err := keychainThere(); err != nil {
		return err
	}
	return keychainError(oskeyring.Set(service, entry, secret))
}

func (systemKeychain) Remove(service, entry string) error {
	if err := keychainThere(); err != nil {
		return err
	}
	return keychainError(oskeyring.Delete(service, entry))
}

func keychainError(err error) error {
	if errors.Is(err, oskeyring.ErrNotFound) {
		return vault.ErrNotFound
	}
	return err
}

// keychainThere looks for a session bus where one is needed. Without it the
// library would start a bus daemon and leave it behind.
func keychainThere() error {
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		return nil
	}
	if bus := os.Getenv("DBUS_SESSION_BUS_ADDRESS"); bus != "" && !strings.HasPrefix(bus, "autolaunch:") {
		return nil
	}
	runtimeDir := filepath.Join("/run/user", strconv.Itoa(os.Getuid()))
	for _, name := range []string{"bus", "dbus-session"} {
		if _, err := os.Stat(filepath.Join(runtimeDir, name)); err == nil {
			return nil
		}
	}
	return errors.New("there is no session bus, so no keychain")
}

// timedKeychain gives a keychain a budget for every call.
type timedKeychain struct {
	chain  Keychain
	budget time.Duration
	turn   chan struct{} // holds a token while a call is in flight
}

func newTimedKeychain(chain Keychain, budget time.Duration) *timedKeychain {
	return &timedKeychain{chain: chain, budget: budget, turn: make(chan struct{}, 1)}
}

func (t *timedKeychain) get(ctx context.Context, entry string) (string, error) {
	return t.call(ctx, func() (string, error) { return t.chain.Get(keychainService, entry) })
}

func (t *timedKeychain) set(ctx context.Context, entry, secret string) error {
	_, err := t.call(ctx, func() (string, error) { return "", t.chain.Set(keychainService, entry, secret) })
	return err
}

func (t *timedKeychain) remove(ctx context.Context, entry string) error {
	_, err := t.call(ctx, func() (string, error) { return "", t.chain.Remove(keychainService, entry) })
	return err
}

// call runs work for as long as the budget lasts. A call that hangs cannot be
// stopped: it is left behind, and as long as it hangs no other one is begun, so
// that there is never more than one.
func (t *timedKeychain) call(ctx context.Context, work func() (string, error)) (string, error) {
	ctx, stop := context.WithTimeoutCause(ctx, t.budget, fmt.Errorf("the keychain did not answer within %v", t.budget))
	defer stop()
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	type answer struct {
		text string
		err  error
	}
	heard := make(chan answer, 1)
	go func() {
		defer func() { <-t.turn }()
		text, err := work()
		heard <- answer{text, err}
	}()
	select {
	case a := <-heard:
		return a.text, a.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
