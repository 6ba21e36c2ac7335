package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/control"
	"github.com/usher-mcp/usher/status"
)

// liveLogs shows what running instances hold of a server, and reports whether there
// was something, or will be.
func liveLogs(ctx context.Context, f *cmdutil.Factory, peers []control.Peer, o *logsOptions) (shown bool, err error) {
	streams, err := openLogs(ctx, peers, o)
	defer func() {
		for _, s := range streams {
			s.close()
		}
	}()
	if err != nil || len(streams) == 0 {
		return false, err
	}
	if o.follow {
		return true, followLogs(ctx, f, streams, o)
	}
	var all []logLine
	for _, s := range streams {
		if err := s.read(func(l logLine) error { all = append(all, l); return nil }); err != nil {
			return false, err
		}
	}
	slices.SortStableFunc(all, func(x, y logLine) int { return x.Time.Compare(y.Time) })
	if len(all) > 0 && !slices.ContainsFunc(all, func(l logLine) bool { return l.PID != all[0].PID }) {
		for i := range all {
			all[i].PID = 0
		}
	}
	return len(all) > 0, printLogs(f, lastLines(all, o.lines), o.json)
}

// followLogs prints lines of all streams as they come, until all have ended.
func followLogs(ctx context.Context, f *cmdutil.Factory, streams []logStream, o *logsOptions) error {
	lines := make(chan logLine)
	var wg sync.WaitGroup
	for _, s := range streams {
		wg.Go(func() {
			_ = s.read(func(l logLine) error { // how it ends makes no difference: its usher is gone
				select {
				case lines <- l:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})
		})
	}
	go func() {
		wg.Wait()
		close(lines)
	}()
	var failed error
	for l := range lines {
		if failed == nil {
			failed = printLog(f, l, o.json)
		}
	}
	if ctx.Err() != nil {
		return failed // Ctrl-C is how one leaves
	}
	if failed == nil {
		f.Note("no usher process runs %s any more", o.server)
	}
	return failed
}

// logStream is the lines that one usher sends.
type logStream struct {
	pid  int // 0 when there is only one
	body io.ReadCloser
	stop context.CancelFunc
}

func (s logStream) close() {
	s.stop()
	_ = s.body.Close() // read to the end, or given up
}

// openLog asks one usher. It must answer soon; its lines may take any time.
func openLog(ctx context.Context, p control.Peer, path string) (logStream, error) {
	ctx, stop := context.WithCancel(ctx)
	patience := time.AfterFunc(cmdutil.AnswerTimeout, stop)
	resp, err := p.Do(ctx, http.MethodGet, path)
	if !patience.Stop() && err != nil {
		err = fmt.Errorf("usher with pid %d did not answer", p.PID)
	}
	if err != nil {
		stop()
		return logStream{}, err
	}
	return logStream{p.PID, resp.Body, stop}, nil
}

// openLogs asks ushers for lines; those that do not host the server are left out.
func openLogs(ctx context.Context, peers []control.Peer, o *logsOptions) ([]logStream, error) {
	q := url.Values{"server": {o.server}}
	if o.follow {
		q.Set("follow", "1")
	}
	if o.lines > 0 {
		q.Set("lines", strconv.Itoa(o.lines))
	}
	var streams []logStream
	var failed []error
	for _, p := range peers {
		s, err := openLog(ctx, p, "/logs?"+q.Encode())
		switch {
		case errors.Is(err, control.ErrUnknownServer):
		case err != nil:
			failed = append(failed, err)
		default:
			streams = append(streams, s)
		}
	}
	if len(streams) == 1 {
		streams[0].pid = 0
	}
	if len(streams) > 0 {
		return streams, nil // one that does not answer must not hide the others
	}
	return nil, errors.Join(failed...)
}

func (s logStream) read(each func(logLine) error) error {
	dec := json.NewDecoder(s.body)
	for {
		var l status.LogLine
		err := dec.Decode(&l)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read lines: %w", err)
		}
		if err := each(logLine{l.Time, l.Text, s.pid}); err != nil {
			return err
		}
	}
}
