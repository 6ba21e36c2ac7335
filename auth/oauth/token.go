package oauth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/usher-mcp/usher/vault"
)

// TokenTimeout bounds one request to a token endpoint. It does not depend on the
// caller's patience: an answer that nobody takes in may be a login lost.
const TokenTimeout = 30 * time.Second

// TokenError is what went wrong at a token, registration or device endpoint. It
// holds no secret, nor any part of a body but the error code and a description that
// was checked for secrets.
//
// It is [ErrRefused] when the server understood and said no, [ErrUnavailable] when
// trying later is right.
type TokenError struct {
	Host   string
	Status int    // 0 when there was no answer
	Code   string // OAuth error code; "" when there was none
	Words  string // the server's description, perhaps empty
	Reason string // what was wrong, when there is no Code

	RetryAfter time.Duration // what the server asked for; 0: nothing

	lost bool  // the server may have acted, and its answer did not reach us
	Err  error // cause
}

func (e *TokenError) Error() string {
	switch {
	case e.Code != "" && e.Words != "":
		return fmt.Sprintf("%s answered %s: %s", e.Host, e.Code, e.Words)
	case e.Code != "":
		return fmt.Sprintf("%s answered %s", e.Host, e.Code)
	case e.Status != 0:
		return fmt.Sprintf("%s answered HTTP %d: %s", e.Host, e.Status, e.Reason)
	}
	return fmt.Sprintf("%s: %s", e.Host, e.Reason)
}

// Is tells a refusal from a failure that will pass.
func (e *TokenError) Is(target error) bool {
	switch e.Code {
	case "", "temporarily_unavailable", "server_error": // the latter belong to other endpoints, and are sent by these
		return target == ErrUnavailable
	}
	return target == ErrRefused
}

// Unwrap returns the cause.
func (e *TokenError) Unwrap() error { return e.Err }

// RefusedWith reports whether the server said no with one of the codes.
func RefusedWith(err error, codes ...string) bool {
	var te *TokenError
	if !errors.As(err, &te) || te.Code == "" {
		return false
	}
	for _, c := range codes {
		if te.Code == c {
			return true
		}
	}
	return false
}

// AnswerLost reports whether the server may have acted although we do not know.
func AnswerLost(err error) bool {
	var te *TokenError
	return errors.As(err, &te) && te.lost
}

// TokenRequest is one request to a token endpoint.
type TokenRequest struct {
	Endpoint    string
	Form        url.Values
	Credentials Credentials
	DPoP        *DPoPKey // nil: no DPoP
	// BeforeSend is asked when the connection is there, before the body is written; an
	// error keeps it from being sent. Nil: it may be sent more than once.
	BeforeSend func(context.Context) error
}

// RequestToken sends one request and reads the answer. It is sent once, with one exception
// that the standard asks for: again with the nonce that the server demanded.
func (w *Client) RequestToken(ctx context.Context, call TokenRequest) (*TokenResponse, error) {
	u, err := checkEndpoint("the token endpoint", call.Endpoint)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), TokenTimeout)
	defer cancel()
	a, err := w.postOnce(ctx, u, call)
	if call.DPoP != nil && RefusedWith(err, "use_dpop_nonce") && w.nonces.Get(u) != "" {
		a, err = w.postOnce(ctx, u, call)
	}
	return a, err
}

func (w *Client) postOnce(ctx context.Context, u *url.URL, call TokenRequest) (*TokenResponse, error) {
	form := url.Values{}
	for k, v := range call.Form {
		form[k] = v
	}
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Accept": {"application/json"}}
	if err := call.Credentials.authenticate(form, header); err != nil {
		return nil, err
	}
	if call.DPoP != nil {
		proof, err := call.DPoP.Proof(http.MethodPost, u, vault.Secret{}, w.nonces.Get(u))
		if err != nil {
			return nil, fmt.Errorf("make a DPoP proof: %w", err)
		}
		header.Set("DPoP", proof)
	}
	resp, body, err := w.exchangeOnce(ctx, http.MethodPost, u, header, form.Encode(), call.BeforeSend)
	if err != nil {
		return nil, err
	}
	w.nonces.Set(u, resp.Header.Get("DPoP-Nonce"))
	return readTokenResponse(resp, body, secretsOf(form, header))
}

// exchange sends one request that holds secrets and returns the whole answer. It
// follows no redirect: the secrets would travel along.
func (w *Client) exchange(ctx context.Context, method string, u *url.URL, header http.Header, body string) (*http.Response, []byte, error) {
	return w.exchangeOnce(ctx, method, u, header, body, nil)
}

// exchangeOnce is exchange for a request that first may keep from being sent, as late
// as that is possible: the connection is there, and the body is not yet written.
func (w *Client) exchangeOnce(ctx context.Context, method string, u *url.URL, header http.Header, body string, first func(context.Context) error) (*http.Response, []byte, error) {
	check := func() error { return nil }
	if first != nil {
		check = func() error { return first(ctx) }
	}
	checked := &checkedBody{text: strings.NewReader(body), check: check}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), checked)
	if err != nil {
		return nil, nil, &TokenError{Host: u.Host, Reason: "the request cannot be made"}
	}
	req.Header = header
	req.ContentLength = int64(len(body))
	if body == "" {
		req.Body = http.NoBody
	}
	req.GetBody = nil // no silent repeat on a connection that broke
	client := &http.Client{Transport: w.rt, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		if why := checked.end(); why != nil {
			return nil, nil, why
		}
		cause := plainCause(err)
		return nil, nil, &TokenError{Host: u.Host, Reason: cause.Error(), lost: !neverSent(err), Err: cause}
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := readBounded(resp.Body)
	if err != nil {
		return nil, nil, &TokenError{Host: u.Host, Status: resp.StatusCode, Reason: err.Error(), lost: resp.StatusCode < 300, Err: err}
	}
	return resp, text, nil
}

// neverSent reports whether the request cannot have reached the server.
func neverSent(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &dns) || errors.Is(err, ErrAddress)
}

// secretsOf lists what of a request must not come back in a message.
func secretsOf(form url.Values, header http.Header) []string {
	var out []string
	for _, name := range []string{"client_secret", "refresh_token", "code", "code_verifier", "client_assertion", "assertion", "subject_token", "device_code", "token"} {
		out = append(out, form[name]...)
	}
	for _, name := range []string{"Authorization", "DPoP"} {
		for _, v := range header.Values(name) {
			_, v, _ = strings.Cut(v, " ")
			out = append(out, v)
		}
	}
	return out
}

// errEnded: the body was asked for after the request had ended.
var errEnded = errors.New("the request has ended")

// checkedBody is the body of a request that must not be sent unless a check, made when
// the connection is there and the body is about to be written, succeeds.
type checkedBody struct {
	text  *strings.Reader
	check func() error
	once  sync.Once

	mu     sync.Mutex // guards what follows
	ended  bool       // the request is over
	passed bool
	err    error
}

// Read checks before it gives the first byte.
func (b *checkedBody) Read(p []byte) (int, error) {
	b.once.Do(func() {
		err := b.check()
		b.mu.Lock()
		defer b.mu.Unlock()
		if err == nil && b.ended {
			err = errEnded
		}
		b.passed, b.err = err == nil, err
	})
	b.mu.Lock()
	err := b.err
	b.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return b.text.Read(p)
}

// Close implements io.Closer.
func (b *checkedBody) Close() error { return nil }

// end returns why nothing of the body was or will be sent; nil if it may have been.
func (b *checkedBody) end() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	return b.err
}

var _ io.ReadCloser = (*checkedBody)(nil)
