package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/usher-mcp/usher/internal/retry"
)

// How often a collector that is busy or away is asked again.
const (
	firstWait = 5 * time.Second
	longWait  = 30 * time.Second
	giveUp    = time.Minute // after the first attempt
)

// answerBytes is how much of an answer is read: it says next to nothing.
const answerBytes = 64 << 10

// Client sends to one target. It may be used by several goroutines.
type Client struct {
	to    Target
	agent string
	http  *http.Client

	once  sync.Once // closes hurry
	hurry chan struct{}
}

// NewClient returns a client. agent is the program and its version.
func NewClient(to *Target, agent string) *Client {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, TLSClientConfig: to.TLS,
		TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second, MaxIdleConnsPerHost: 2,
	}
	return &Client{
		to: *to, agent: agent, hurry: make(chan struct{}),
		http: &http.Client{
			Transport: transport,
			// The headers may hold a key, and are for this collector only.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Hurry has nothing tried again from now on, for a program that ends.
func (c *Client) Hurry() { c.once.Do(func() { close(c.hurry) }) }

// Close closes idle connections. In-flight requests finish.
func (c *Client) Close() {
	c.Hurry()
	c.http.CloseIdleConnections()
}

// Send sends one message. A collector that is busy (429, 502, 503, 504) or cannot be
// reached is asked again, for a minute at most and no earlier than it says. An error
// that is a *Rejected means that the collector took the rest.
func (c *Client) Send(ctx context.Context, message []byte) error {
	if c.to.Gzip {
		message = compressed(message)
	}
	end := time.Now().Add(giveUp)
	for wait := firstWait; ; wait = min(wait*3/2, longWait) {
		err := c.post(ctx, message)
		var busy *busyError
		if !errors.As(err, &busy) {
			return err
		}
		// Half to one and a half of it, so that many programs do not come at once.
		pause := max(busy.after, wait/2+rand.N(wait))
		if time.Until(end) < pause {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-c.hurry:
			timer.Stop()
			return err
		case <-ctx.Done():
			timer.Stop()
			return err // says more than that the time is over
		}
	}
}

func compressed(message []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(message) // into memory
	_ = z.Close()
	return b.Bytes()
}

// busyError is one after which the same may be sent again.
type busyError struct {
	err   error
	after time.Duration // the collector wants to be left alone for so long
}

func (e *busyError) Error() string { return e.err.Error() }
func (e *busyError) Unwrap() error { return e.err }

// post tries once.
func (c *Client) post(ctx context.Context, message []byte) error {
	ctx, stop := context.WithTimeout(ctx, c.to.Timeout)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.to.URL, bytes.NewReader(message))
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", c.agent)
	for k, v := range c.to.Headers {
		req.Header.Set(k, v)
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	if c.to.Gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // the address is told by us
		}
		return &busyError{err: fmt.Errorf("collector %s: %w", place(req.URL), err)}
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerBytes))
	switch {
	case resp.StatusCode/100 == 2 && err == nil:
		return rejected(resp.Header.Get("Content-Type"), body)
	case resp.StatusCode/100 == 2:
		return nil // it was taken; only the answer was lost
	}
	err = fmt.Errorf("collector %s: %s%s", place(req.URL), resp.Status, excerpt(body))
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return &busyError{err, retry.After(resp.Header.Get("Retry-After"))}
	}
	return err
}

// excerpt is the beginning of an answer, for a log.
func excerpt(body []byte) string {
	const most = 200
	text := strings.TrimSpace(string(body[:min(len(body), most)]))
	if text == "" {
		return ""
	}
	return ": " + strconv.QuoteToGraphic(text)
}
