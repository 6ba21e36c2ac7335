package torture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/usher-mcp/usher/internal/fake"
)

// markName is the variable by which the processes of one cycle are found.
const markName = "USHER_TORTURE_MARK"

// censusEvery is how often the processes of all cycles are looked for.
const censusEvery = 100 * time.Millisecond

// errElsewhere: a promise cannot be checked on this system.
var errElsewhere = errors.New("not on " + runtime.GOOS)

// leftovers starts usher with a server that leaves processes behind on purpose, ends
// it in order or kills it in the middle of a call, and looks for survivors after
// five seconds.
func leftovers(t *trial) error {
	var c census
	if _, err := c.marked("nobody", time.Now()); err != nil {
		return err
	}
	for _, name := range []string{"start and stop cycles", "SIGKILLs of the host during a call", "processes left after 5 s"} {
		t.count(name, 0) // in this order
	}
	// Most of a cycle is waiting for servers that do not want to end.
	done := t.spread(t.goal(8, 40), t.goal(8, 2000), func(_, i int) {
		if err := t.cycle(&c, i); err != nil && t.ctx.Err() == nil {
			t.breaks("cycle %d: %v", i, err)
		}
	})
	t.count("start and stop cycles", (done+1)/2)
	t.count("SIGKILLs of the host during a call", done/2)
	return nil
}

// leavers are the ways in which a server leaves processes behind.
var leavers = [][]string{
	{"--switch", "fork-child=120"},
	{"--switch", "setsid-child=120"},
	{"--switch", "fork-child=120", "--switch", "setsid-child=120"},
}

func (t *trial) cycle(c *census, i int) error {
	mark := fmt.Sprintf("%d-%d", os.Getpid(), i)
	ledger := filepath.Join(t.dir, mark+".ledger")
	args := append([]string{"fake", "--ledger", ledger}, leavers[i/2%len(leavers)]...)
	if i%40 >= 38 {
		args = append(args, "--switch", "neverexit=60") // stopping it takes five seconds
	}
	killed := i%2 == 1
	if killed {
		args = append(args, "--switch", "latency=60000;on=tools/call")
	}
	h, err := t.newHome(mark, map[string]any{"leaver": map[string]any{"command": t.self, "args": args, "env": map[string]string{markName: mark}}})
	if err != nil {
		return err
	}
	cmd := h.command("call", "leaver", "echo", "text=hello")
	if err := cmd.Start(); err != nil {
		return err
	}
	if killed {
		err = awaitCall(t.ctx, ledger)
		_ = cmd.Process.Kill()
	}
	if ended := cmd.Wait(); !killed && ended != nil {
		err = fmt.Errorf("the call: %w", ended)
	}
	if err != nil {
		return err
	}
	if entries, err := fake.ReadLedger(ledger); err != nil || len(entries.Events(fake.EventChild)) == 0 {
		return fmt.Errorf("the server left nobody behind, which it should: %w", err)
	}
	t.gone(c, mark)
	for _, path := range []string{ledger, h.dir} {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}

// awaitCall waits until the server is at work on a call.
func awaitCall(ctx context.Context, ledger string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	_, err := fake.WatchLedger(ctx, ledger, func(e fake.Entry) bool { return e.Event == fake.EventRequest && e.Method == "tools/call" })
	if err != nil {
		return fmt.Errorf("the call did not arrive: %w", err)
	}
	return nil
}

// patience is how long processes that are late are watched, to tell those that take
// too long from those that stay.
const patience = 30 * time.Second

// gone waits until no process of a cycle is left, and counts those that are after
// five seconds.
func (t *trial) gone(c *census, mark string) {
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	tick := time.NewTicker(censusEvery)
	defer tick.Stop()
	begin, late := time.Now(), ""
	for {
		left, err := c.marked(mark, begin)
		if err == nil && len(left) == 0 {
			t.most("ms until the last one was gone, at most", int(time.Since(begin).Milliseconds()))
			if late != "" {
				t.breaks("cycle %s: gone only after %.1f s: %s", mark, time.Since(begin).Seconds(), late)
			}
			return
		}
		if late == "" && len(left) > 0 && time.Since(begin) > 5*time.Second {
			late = describe(left[0])
			t.count("processes left after 5 s", len(left))
		}
		select {
		case <-tick.C:
			continue
		case <-ctx.Done():
		}
		if t.ctx.Err() != nil {
			return
		}
		t.breaks("cycle %s: there after %v: %s", mark, patience, late)
		for _, pid := range left {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill() // it was started by this run
			}
		}
		return
	}
}
