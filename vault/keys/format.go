package keys

import (
	"fmt"
	"io"
)

// What holds keys shows none of them, whatever prints it.

// Format writes where the master key is kept.
func (k *Keys) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "keys("+k.opt.Setting+")")
}

// Format writes the id of the data key in use.
func (k *keyring) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "keyring("+k.current.String()+")")
}

// Format writes the place and the fingerprint.
func (m made) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "master("+m.lock.Place+" "+m.lock.ID+")")
}
