package surface

import (
	"errors"
	"strings"
	"time"

	"github.com/usher-mcp/usher/policy"
)

// unreachableError says that the list of the server which a name is of could not be
// read, so that the name may well exist.
type unreachableError struct {
	server string
	err    error
	again  time.Duration // when the server is asked again
}

func (e *unreachableError) Error() string { return e.server + " cannot be reached: " + e.err.Error() }

func (e *unreachableError) Unwrap() error { return e.err }

// unread returns why the list is not known of the server that a name is of; nil when
// there is no such server or its list is known.
func (s *Surface) unread(snap *snapshot, method, name string) error {
	for i := range snap.sources {
		src := &snap.sources[i]
		if !src.lacks(method) || !strings.HasPrefix(name, s.names.ShownPart(src.Name, src.Account)) {
			continue
		}
		ended, err := s.readings.failure(src.key, method)
		if err == nil {
			continue
		}
		if policy.Explain(err).Kind != KindUnavailable {
			return err
		}
		return &unreachableError{src.label, err, max(time.Second, retryAfter-time.Since(ended))}
	}
	return nil
}

// failure returns when a list was last read, and why it could not be.
func (r *readings) failure(k policy.Key, method string) (time.Time, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := r.all[readingKey{k, method}]; one != nil && !one.ended.IsZero() {
		return one.ended, one.err
	}
	return time.Time{}, nil
}

// Explain says what an error of a view means to an agent.
func (s *Surface) Explain(err error) Problem {
	p := policy.Explain(err)
	var down *unreachableError
	if errors.As(err, &down) {
		p.Server, p.Text = down.server, down.server+" cannot be reached: "+p.Text
		p.RetryAfter = max(p.RetryAfter, down.again)
	}
	return p
}
