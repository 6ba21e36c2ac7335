package person

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// TokenVariable holds the script token in the environment of a script.
const TokenVariable = "USHER_SCRIPT_TOKEN"

// minToken is the length below which a token is too easy to guess.
const minToken = 20

// TokenFile is the file with the hash of the script token, as sha256sum prints it.
func TokenFile(dir string) string { return filepath.Join(dir, "script-token") }

// NewToken makes a script token, which takes the place of any other, and keeps its
// hash in dir.
func NewToken(dir string) (string, error) {
	token := rand.Text()
	sum := sha256.Sum256([]byte(token))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("keep the script token: %w", err)
	}
	next := TokenFile(dir) + ".new"
	if err := os.WriteFile(next, []byte(hex.EncodeToString(sum[:])+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("keep the script token: %w", err)
	}
	if err := os.Rename(next, TokenFile(dir)); err != nil {
		return "", fmt.Errorf("keep the script token: %w", err)
	}
	return token, nil
}

// RemoveToken makes the script token invalid, and reports whether there was one.
func RemoveToken(dir string) (bool, error) {
	err := os.Remove(TokenFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// ValidToken reports whether token is the one whose hash is kept in dir.
func ValidToken(dir, token string) bool {
	if dir == "" || len(token) < minToken {
		return false
	}
	f, err := os.Open(TokenFile(dir))
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // only read from
	text, err := io.ReadAll(io.LimitReader(f, 1024))
	fields := strings.Fields(string(text))
	if err != nil || len(fields) == 0 {
		return false
	}
	kept, err := hex.DecodeString(fields[0])
	sum := sha256.Sum256([]byte(token))
	return err == nil && subtle.ConstantTimeCompare(kept, sum[:]) == 1
}
