package authn

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/gateway/authn/authntest"
	"github.com/usher-mcp/usher/internal/limit"
)

// rotating is an issuer without a network, whose key can be replaced.
type rotating struct {
	t *testing.T

	mu      sync.Mutex // guards what follows
	key     *rsa.PrivateKey
	kid     string
	fetches int
	down    bool
}

const rotatingURL = "https://issuer.example.com"

func (i *rotating) rotate(kid string) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		i.t.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.key, i.kid = key, kid
}

func (i *rotating) RoundTrip(r *http.Request) (*http.Response, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	if strings.HasSuffix(r.URL.Path, "/keys") {
		if i.fetches++; i.down {
			return nil, errors.New("down")
		}
		e := big.NewInt(int64(i.key.E)).Bytes()
		fmt.Fprintf(w, `{"keys":[{"kty":"RSA","alg":"RS256","use":"sig","kid":%q,"n":%q,"e":%q}]}`, i.kid, authntest.Encode(i.key.N.Bytes()), authntest.Encode(e))
	} else {
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q,"id_token_signing_alg_values_supported":["RS256"]}`, rotatingURL, rotatingURL+"/keys")
	}
	return w.Result(), nil
}

func (i *rotating) fetched() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fetches
}

// token signs a token with the current key under any kid.
func (i *rotating) token(kid string) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	claims, err := json.Marshal(map[string]any{"iss": rotatingURL, "aud": "https://u.example.com", "sub": "ada", "exp": time.Now().Add(time.Hour).Unix()})
	if err != nil {
		i.t.Fatal(err)
	}
	text := authntest.Encode([]byte(`{"alg":"RS256","kid":"`+kid+`"}`)) + "." + authntest.Encode(claims)
	sum := sha256.Sum256([]byte(text))
	sig, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:])
	if err != nil {
		i.t.Fatal(err)
	}
	return text + "." + authntest.Encode(sig)
}

// forged is a token of nobody.
func forged(kid string) string {
	return authntest.Encode([]byte(`{"alg":"RS256","kid":"`+kid+`"}`)) + "." + authntest.Encode([]byte(`{}`)) + "." + authntest.Encode(make([]byte, 256))
}

func newRotating(t *testing.T) (*rotating, *OIDC) {
	t.Helper()
	i := &rotating{t: t}
	i.rotate("k1")
	auth, err := NewOIDC(OIDCOptions{Issuer: rotatingURL, URL: "https://u.example.com", Client: &http.Client{Transport: i}})
	if err != nil {
		t.Fatal(err)
	}
	return i, auth
}

// Forged tokens with invented kids make us ask the issuer once per interval, and
// genuine ones are accepted meanwhile.
func TestForgedTokensFetchKeysSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, auth := newRotating(t)
		if _, err := authenticate(t, auth, "Bearer "+i.token("k1")); err != nil {
			t.Fatal(err)
		}
		before := i.fetched()
		const intervals = 3
		for n := range intervals * 100 {
			if _, err := authenticate(t, auth, "Bearer "+forged(fmt.Sprint("x", n))); err == nil {
				t.Fatal("a forged token was accepted")
			}
			if _, err := authenticate(t, auth, "Bearer "+forged("k1")); err == nil {
				t.Fatal("a forged token with a real kid was accepted")
			}
			if n%50 == 0 {
				if _, err := authenticate(t, auth, "Bearer "+i.token("k1")); err != nil {
					t.Error(err)
				}
			}
			time.Sleep(limit.IssuerKeysInterval / 100)
		}
		if n := i.fetched() - before; n > intervals || n == 0 {
			t.Errorf("600 forged tokens in %d intervals fetched the keys %d times", intervals, n)
		}
	})
}

// A genuine rotation is noticed: by the first token when nobody asked for keys lately,
// and within the interval during a flood of forged tokens.
func TestKeyRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, auth := newRotating(t)
		if _, err := authenticate(t, auth, "Bearer "+i.token("k1")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(limit.IssuerKeysInterval)
		i.rotate("k2")
		if _, err := authenticate(t, auth, "Bearer "+i.token("k2")); err != nil {
			t.Errorf("the first token after a rotation: %v", err)
		}
		i.rotate("k3")
		rotated := time.Now()
		for n := 0; ; n++ {
			_, _ = authenticate(t, auth, "Bearer "+forged(fmt.Sprint("x", n))) // it is the flood
			if _, err := authenticate(t, auth, "Bearer "+i.token("k3")); err == nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
			if d := time.Since(rotated); d > limit.IssuerKeysInterval {
				t.Fatalf("the new key is not known after %s", d)
			}
		}
	})
}

// While the issuer never gave keys, nobody's token is called invalid.
func TestIssuerWithoutKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, auth := newRotating(t)
		i.down = true
		for range 20 {
			_, err := authenticate(t, auth, "Bearer "+i.token("k1"))
			if no := (*RefusedError)(nil); err == nil || errors.As(err, &no) {
				t.Fatalf("got %v", err)
			}
		}
		if n := i.fetched(); n != 1 {
			t.Errorf("asked %d times", n)
		}
		i.mu.Lock()
		i.down = false
		i.mu.Unlock()
		time.Sleep(limit.IssuerKeysInterval)
		if _, err := authenticate(t, auth, "Bearer "+i.token("k1")); err != nil {
			t.Errorf("after it came back: %v", err)
		}
	})
}

// A token that is larger than any real one is not looked at.
func TestLargeTokenIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, auth := newRotating(t)
		_, err := authenticate(t, auth, "Bearer "+forged(strings.Repeat("k", limit.TokenBytes)))
		if no := (*RefusedError)(nil); !errors.As(err, &no) || i.fetched() != 0 {
			t.Errorf("%v, %d fetches", err, i.fetched())
		}
	})
}

// Keys without end are not read to their end.
func TestLargeKeySetIsRefused(t *testing.T) {
	read := &countingReader{}
	k := &issuerKeys{}
	c := k.client(&http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(read)}, nil
	})})
	resp, err := c.Get(rotatingURL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil || n != limit.IssuerKeysBytes || read.n > 2*limit.IssuerKeysBytes {
		t.Errorf("%d of %d bytes were read, %v", n, read.n, err)
	}
}

// countingReader has no end.
type countingReader struct{ n int }

func (r *countingReader) Read(p []byte) (int, error) {
	r.n += len(p)
	return len(p), nil
}
