package torture

import (
	"sync"

	"github.com/usher-mcp/usher/internal/fake"
)

// races lets processes that share a store use one login whose token has just ended,
// all at the same moment. The server ends the login if a refresh token is used twice.
func races(t *trial) error {
	w, err := newWorld(t.ctx, t.dir, nil, false)
	if err != nil {
		return err
	}
	defer w.close()
	if err := w.login(t.ctx, account(0)); err != nil {
		return err
	}
	var children []*process
	defer func() {
		for _, c := range children {
			_ = c.in.Close()
			_ = c.cmd.Wait() // its answers were read
		}
	}()
	for range t.goal(4, 16) {
		c, err := t.start(nil, ChildCommand, "call", w.dir, w.url)
		if err != nil {
			return err
		}
		children = append(children, c)
	}
	for _, c := range children {
		if said := c.ask(""); said != "ready" {
			t.breaks("a process does not start: %s", said)
			return nil
		}
	}
	rounds, calls := 0, 0
	for ; rounds < t.goal(10, 1000) && t.on(); rounds++ {
		w.as.Expire()
		var wg sync.WaitGroup
		for _, c := range children {
			wg.Go(func() {
				if said := c.ask("call"); said != "ok" && t.ctx.Err() == nil {
					t.breaks("round %d: %s", rounds, said)
				}
			})
		}
		wg.Wait()
		calls += len(children)
		if n := len(w.as.Requests(fake.EventToken, "refresh_token")); n != rounds+1 && t.ctx.Err() == nil {
			t.breaks("%d refreshes after %d expiries", n, rounds+1)
			break
		}
	}
	t.count("processes", len(children))
	t.count("expiries", rounds)
	t.count("refreshes", len(w.as.Requests(fake.EventToken, "refresh_token")))
	t.count("calls", calls)
	t.count("logins lost", 0)
	return nil
}
