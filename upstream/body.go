package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
)

// readBody reads a JSON answer of at most maxMessageBytes.
func (l *httpLink) readBody(ctx context.Context, resp *http.Response) ([]byte, error) {
	limit := l.c.server.MaxMessageBytes
	body, err := readBounded(l.c.paced(ctx, resp.Body), resp.ContentLength, limit)
	if errors.Is(err, ErrTooLarge) {
		l.c.counts.tooLarge.Add(1)
		return nil, &TooLargeError{Server: l.c.server.Name, Limit: limit}
	}
	if err != nil {
		return nil, l.transport("receive", true, err)
	}
	return body, nil
}

// Sizes of the parts that a body of unknown length is read in. Growing one slice
// instead would leave several times the limit behind as garbage.
const (
	firstPart = 4 << 10
	lastPart  = 1 << 20
)

// readBounded reads all of r, ErrTooLarge when that is more than limit. size is
// what the peer announced, negative when it did not.
func readBounded(r io.Reader, size, limit int64) ([]byte, error) {
	if size > limit {
		return nil, ErrTooLarge
	}
	if size >= 0 {
		body := make([]byte, size)
		_, err := io.ReadFull(r, body)
		return body, err
	}
	parts := [][]byte{make([]byte, 0, firstPart)}
	for total := int64(0); ; {
		part := &parts[len(parts)-1]
		n, err := r.Read((*part)[len(*part):cap(*part)])
		*part = (*part)[:len(*part)+n]
		if total += int64(n); total > limit {
			return nil, ErrTooLarge
		}
		switch {
		case errors.Is(err, io.EOF) && len(parts) == 1:
			return parts[0], nil
		case errors.Is(err, io.EOF):
			return slices.Concat(parts...), nil
		case err != nil:
			return nil, err
		case len(*part) == cap(*part):
			parts = append(parts, make([]byte, 0, min(cap(*part)*2, lastPart)))
		}
	}
}
