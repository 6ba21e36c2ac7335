package torture

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/fake"
)

// crashes lets servers die while they work on a call that has a side effect: it
// happens at most once, and the caller hears that nobody knows whether it did.
func crashes(t *trial) error {
	for _, sw := range []string{"halfclose=headers", "halfclose=body", "sse-drop"} {
		s := fake.New(&fake.Options{Name: "bank", Switches: []string{sw + ";on=tools/call"}})
		url, stop, err := s.Listen()
		if err != nil {
			return err
		}
		srv := config.Server{Transport: config.TransportHTTP, URL: url + "/mcp", Trust: true}
		err = t.crash(t.goal(20, 3000), 100, srv, "pay", `{"id":"%s"}`, func() (*fake.Ledger, error) { return s.Ledger(), nil })
		s.Close()
		stop()
		if err != nil {
			return err
		}
	}
	ledger := filepath.Join(t.dir, "ledger")
	srv := config.Server{Transport: config.TransportStdio, Command: t.self, Args: []string{"fake", "--name", "bank", "--ledger", ledger}, Trust: true}
	err := t.crash(t.goal(8, 1000), 20, srv, "crash", `{"id":"%s","when":"after"}`, func() (*fake.Ledger, error) { return fake.ReadLedger(ledger) })
	t.count("carried out twice", 0)
	t.count("errors that do not say so", 0)
	return err
}

// crash makes n calls, each to a server of its own, so that no crash waits for the
// backoff of another. A host has some of the servers at a time.
func (t *trial) crash(n, batch int, srv config.Server, tool, arguments string, ledger func() (*fake.Ledger, error)) error {
	done := 0
	for done < n && t.on() {
		var servers []config.Server
		for i := range min(batch, n-done) {
			one := srv
			one.Name = fmt.Sprintf("bank%d", done+i)
			servers = append(servers, one)
		}
		h, err := t.open(servers)
		if err != nil {
			return err
		}
		first := done
		done += t.spread(4, len(servers), func(_, i int) {
			id := fmt.Sprintf("%s-%d", tool, first+i)
			_, err := h.Call(t.ctx, fmt.Sprintf("bank%d", first+i), tool, fmt.Appendf(nil, arguments, id), nil)
			if t.ctx.Err() == nil && (!errors.Is(err, host.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "outcome is unknown")) {
				t.breaks("%s: %v", id, err)
				t.count("errors that do not say so", 1)
			}
		})
		if err := h.Close(); err != nil {
			return err
		}
	}
	t.count("crashes during a call", done)
	return t.settle(ledger, tool)
}

// settle counts what was carried out.
func (t *trial) settle(ledger func() (*fake.Ledger, error), tool string) error {
	l, err := ledger()
	if err != nil {
		return err
	}
	executed := map[string]int{}
	for _, e := range l.Events(fake.EventExecuted) {
		executed[e.Detail]++
	}
	t.count("carried out", len(executed))
	for id, times := range executed {
		if times > 1 && strings.HasPrefix(id, tool) {
			t.breaks("%s was carried out %d times", id, times)
			t.count("carried out twice", 1)
		}
	}
	return nil
}
