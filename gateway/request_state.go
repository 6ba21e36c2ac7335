package gateway

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// state is what a sealed requestState says: which suspended call to wake, or why the
// request is to be made again. It is bound to whom and to what it was given for.
type state struct {
	Kind    string `json:"k"`           // stateSuspended, stateLogin, stateAgain
	Call    string `json:"c,omitempty"` // id of the suspended call
	Round   int    `json:"r,omitempty"` // of its questions, so that no state works twice
	Peer    string `json:"p,omitempty"` // the gateway that has it
	Server  string `json:"s,omitempty"` // that wants a login
	Request string `json:"q"`           // endpoint, method and name of the request
	Expires int64  `json:"e"`           // Unix seconds
}

const (
	stateSuspended = "parked"
	stateLogin     = "login"
	stateAgain     = "again"
)

const sealKeyLen = 32

var (
	errForeignState = errors.New("not a state of this gateway")
	errBadState     = errors.New("the requestState is not valid any more, or was given to somebody else; make the call again without it")
)

// sealer seals states with AES-GCM. The owner is part of what is authenticated:
// a state is of no use to another principal, token or scope.
type sealer struct {
	aead   cipher.AEAD
	prefix string // names the key, so that states of a usher behind us are told apart
}

func newSealer(key []byte) *sealer {
	if len(key) != sealKeyLen {
		panic("gateway: the key must have 32 bytes")
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // only for a wrong length
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // only for a block size that AES does not have
	}
	sum := sha256.Sum256(append([]byte("usher request state "), key...))
	return &sealer{aead: aead, prefix: "usher1." + base64.RawURLEncoding.EncodeToString(sum[:6]) + "."}
}

func (s *sealer) seal(st state, owner string, ttl time.Duration) string {
	st.Expires = time.Now().Add(ttl).Unix()
	plain, err := json.Marshal(st)
	if err != nil {
		panic(err) // strings and numbers only
	}
	nonce := make([]byte, s.aead.NonceSize(), s.aead.NonceSize()+len(plain)+s.aead.Overhead())
	_, _ = rand.Read(nonce) // never fails
	return s.prefix + base64.RawURLEncoding.EncodeToString(s.aead.Seal(nonce, nonce, plain, []byte(owner)))
}

// open reads a state that was given to owner for this request. The error is
// errForeignState for what is not ours to read.
func (s *sealer) open(text, owner, request string) (state, error) {
	body, ok := strings.CutPrefix(text, s.prefix)
	if !ok {
		return state{}, errForeignState
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(body)
	if err != nil || len(raw) < s.aead.NonceSize() {
		return state{}, errBadState
	}
	plain, err := s.aead.Open(nil, raw[:s.aead.NonceSize()], raw[s.aead.NonceSize():], []byte(owner))
	if err != nil {
		return state{}, errBadState
	}
	var st state
	if json.Unmarshal(plain, &st) != nil || st.Request != request || time.Now().Unix() > st.Expires {
		return state{}, errBadState
	}
	return st, nil
}
