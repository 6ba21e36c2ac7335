package cmdutil

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/control"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/status"
)

// AnswerTimeout is how long a running usher may take to answer; one that hangs must
// not hang the command that looks after it.
const AnswerTimeout = 3 * time.Second

// Running finds the running usher processes, only the one with pid when that is not 0.
func Running(ctx context.Context, f *Factory, pid int) ([]control.Peer, error) {
	dirs, err := config.FindDirs(f.IO.System)
	if err != nil {
		return nil, err
	}
	// Who does not answer is taken for dead, and its socket removed: that must not
	// happen because of a Ctrl-C here.
	peers, err := control.Peers(context.WithoutCancel(ctx), dirs.Run)
	if err != nil || pid == 0 {
		return peers, err
	}
	for _, p := range peers {
		if p.PID == pid {
			return []control.Peer{p}, nil
		}
	}
	return nil, WithHint(fmt.Errorf("no usher process with pid %d is running", pid), "usher status")
}

// Reports asks usher processes for their status, all at once. Those that do not answer
// are left out and reported as errors.
func Reports(ctx context.Context, peers []control.Peer) ([]status.Report, []error) {
	got := make([]status.Report, len(peers))
	errs := make([]error, len(peers))
	var wg sync.WaitGroup
	for i, p := range peers {
		wg.Go(func() { errs[i] = askStatus(ctx, p, &got[i]) })
	}
	wg.Wait()
	var out []status.Report
	var failed []error
	for i := range peers {
		if errs[i] != nil {
			failed = append(failed, errs[i])
			continue
		}
		out = append(out, got[i])
	}
	return out, failed
}

func askStatus(ctx context.Context, p control.Peer, into *status.Report) error {
	ctx, stop := context.WithTimeout(ctx, AnswerTimeout)
	defer stop()
	resp, err := p.Do(ctx, http.MethodGet, "/status")
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return fmt.Errorf("read the answer of usher with pid %d: %w", p.PID, err)
	}
	return nil
}

// AskReread has one usher read its files again.
func AskReread(ctx context.Context, p control.Peer) (app.ConfigChange, error) {
	ctx, stop := context.WithTimeout(ctx, steerTimeout)
	defer stop()
	var out app.ConfigChange
	resp, err := p.Do(ctx, http.MethodPost, "/reread")
	if err != nil {
		return out, err
	}
	defer func() { _ = resp.Body.Close() }()
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		return out, fmt.Errorf("read the answer of usher with pid %d: %w", p.PID, err)
	}
	return out, nil
}

// SteerOutcome counts the results of an operation sent to several usher processes.
type SteerOutcome struct {
	Asked, Reached int
	unknown        error // one that does not host the server
	Failed         []error
}

// Steer sends an operation on one server to usher processes, all at once.
func Steer(ctx context.Context, peers []control.Peer, operation, server string) SteerOutcome {
	errs := make([]error, len(peers))
	var wg sync.WaitGroup
	for i, p := range peers {
		wg.Go(func() {
			ctx, stop := context.WithTimeout(ctx, steerTimeout)
			defer stop()
			resp, err := p.Do(ctx, http.MethodPost, "/"+operation+"?server="+url.QueryEscape(server))
			if err == nil {
				err = resp.Body.Close()
			}
			errs[i] = err
		})
	}
	wg.Wait()
	out := SteerOutcome{Asked: len(peers)}
	for _, err := range errs {
		switch {
		case err == nil:
			out.Reached++
		case errors.Is(err, control.ErrUnknownServer):
			out.unknown = err
		default:
			out.Failed = append(out.Failed, err)
		}
	}
	return out
}

// steerTimeout is longer: stopping a deaf child takes its time.
const steerTimeout = 30 * time.Second
