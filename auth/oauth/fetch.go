package oauth

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/usher-mcp/usher/internal/limit"
)

// Bounds of fetching a document during discovery.
const (
	fetchTimeout = 10 * time.Second
	maxHops      = 5
)

// errAbsent marks a document that is not there, which lets the next place be tried;
// a document that is broken or out of reach does not.
var errAbsent = errors.New("there is no such document")

// document fetches JSON into v. Redirects are followed only to addresses that
// would have been taken in the first place. The body is never part of an error.
func (w *Client) document(ctx context.Context, what, address string, v any) error {
	if _, err := checkEndpoint(what, address); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("%s is not an address", what)
	}
	req.Header.Set("Accept", "application/json")
	// A connection that was allowed only to look for an authorization server must not
	// carry another request: the guard is asked when connections are made.
	req.Close = ctx.Value(probePortKey{}) != nil
	client := &http.Client{Transport: w.rt, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		next.Close = via[0].Close
		if len(via) > maxHops {
			return &redirectError{fmt.Sprintf("more than %d redirects", maxHops)}
		}
		if via[0].URL.Scheme == "https" && next.URL.Scheme != "https" {
			return &redirectError{"a redirect leaves encryption"}
		}
		if _, err := checkEndpoint("a redirect", next.URL.String()); err != nil {
			return &redirectError{err.Error()}
		}
		return nil
	}}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("fetch %s from %s: %w", what, req.URL.Host, plainCause(err))
	}
	defer func() { _ = resp.Body.Close() }()
	return readDocument(what, resp, v)
}

func readDocument(what string, resp *http.Response, v any) error {
	host := Clean(resp.Request.URL.Host, 100)
	switch {
	case resp.StatusCode >= 400 && resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests:
		return fmt.Errorf("%s at %s: HTTP %d: %w", what, host, resp.StatusCode, errAbsent)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%s at %s: HTTP %d", what, host, resp.StatusCode)
	}
	body, err := readBounded(resp.Body)
	if err != nil {
		return fmt.Errorf("%s at %s: %w", what, host, err)
	}
	body = bytes.TrimSpace(body)
	if len(body) == 0 || body[0] == '<' {
		// Sites made of one page answer every address with that page.
		return fmt.Errorf("%s at %s is a web page: %w", what, host, errAbsent)
	}
	if body[0] != '{' || json.Unmarshal(body, v) != nil {
		return fmt.Errorf("%s at %s is not the JSON it should be", what, host)
	}
	return nil
}

// readBounded reads a whole body, or fails if it is too large.
func readBounded(r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, limit.LoginDocument+1))
	if err != nil {
		return nil, fmt.Errorf("the answer broke off: %w", plainCause(err))
	}
	if len(body) > limit.LoginDocument {
		return nil, fmt.Errorf("the answer is larger than %d bytes", limit.LoginDocument)
	}
	return body, nil
}

// redirectError is a refused hop of a redirect, in our own words.
type redirectError struct{ msg string }

func (e *redirectError) Error() string { return e.msg }

// plainCause puts an error of net/http into words that hold neither the address,
// whose query may be secret, nor anything a stranger sent.
func plainCause(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	var (
		op   *net.OpError
		dns  *net.DNSError
		cert *tls.CertificateVerificationError
		hop  *redirectError
	)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &op) && op.Timeout():
		return fmt.Errorf("no answer in time: %w", context.DeadlineExceeded)
	case errors.Is(err, context.Canceled), errors.Is(err, ErrAddress),
		errors.As(err, &hop), errors.As(err, &dns), errors.As(err, &cert), errors.As(err, &op):
		return err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the connection was closed")
	}
	return errors.New("the connection failed, or the answer was no HTTP")
}
