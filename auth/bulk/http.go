package bulk

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/usher-mcp/usher/internal/limit"
)

// lineTimeout is for a client that does not read.
const lineTimeout = 10 * time.Second

// bodyTimeout is how long a client may take to send its answers.
const bodyTimeout = 30 * time.Second

// ServeInput takes the lines of [Input] in the body of a request and answers with one
// reply each. Who may send them is the caller's business.
func (d *Driver) ServeInput(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout)) // some connections have none
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit.LoginInputBytes))
	_ = control.SetReadDeadline(time.Time{})
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		http.Error(w, "the request is too large", http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		http.Error(w, "the request cannot be read", http.StatusBadRequest)
		return
	}
	in := NewInput(d, NewEncoder(flushing(w)))
	_ = in.Read(r.Context(), bytes.NewReader(body)) // the client has gone
}

// ServeEvents writes where every login stands and then what happens, as the lines of
// [Encoder], until all have ended or the client leaves.
func (d *Driver) ServeEvents(w http.ResponseWriter, r *http.Request) {
	sub := d.Subscribe() // before the first look, so that nothing falls between
	defer sub.Close()
	enc, told := NewEncoder(flushing(w)), map[string]bool{}
	for {
		open, err := d.tellRows(enc, told)
		if err != nil || open == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
		_, _, err = sub.Next(ctx)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) || r.Context().Err() != nil {
			return
		}
	}
}

// tellRows writes the rows that have changed since they were told, and counts those
// that have not ended.
func (d *Driver) tellRows(enc *Encoder, told map[string]bool) (open int, err error) {
	for _, row := range d.Rows() {
		if !row.Phase.Ended() {
			open++
		}
		if p := row.Login; p != nil && !told[p.State] {
			told[p.State] = true
			err = errors.Join(err, enc.Outcome(Outcome{Status: StatusPending, Server: row.Server, ServerURL: row.ServerURL, Login: *p}))
		}
		mark := row.Server + " " + row.Since.String() + " " + string(row.Phase)
		if !told[mark] && row.Phase != PhaseQueued {
			told[mark] = true
			err = errors.Join(err, enc.Event(row.Event))
		}
	}
	return open, err
}

// flushing makes every line reach the client at once.
func flushing(w http.ResponseWriter) io.Writer {
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Cache-Control", "no-store")
	return &flusher{w, http.NewResponseController(w)}
}

type flusher struct {
	w       io.Writer
	control *http.ResponseController
}

func (f *flusher) Write(p []byte) (int, error) {
	_ = f.control.SetWriteDeadline(time.Now().Add(lineTimeout)) // some writers have none
	n, err := f.w.Write(p)
	if err == nil {
		_ = f.control.Flush() // some writers need none
	}
	return n, err
}
