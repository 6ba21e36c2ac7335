package torture

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/usher-mcp/usher/internal/fake"
)

// Each process works on some logins in turn, and the next one on others: what a dead
// one held is free again only after some seconds.
const (
	killStride        = 7
	shortKillAccounts = 24
	killAccounts      = 1024
)

// kills starts processes that do nothing but renew logins and store the new tokens,
// and kills each at a random instant. A token that was used must be in the store
// afterwards, and every login must work in the end.
//
// A process that dies after the authorization server has replaced its refresh token
// and before the new one is stored leaves one that is spent; the server accepts it
// once more, as servers do, and those repeats are counted.
func kills(t *trial) error {
	lanes, accounts := min(runtime.NumCPU(), 4), t.goal(shortKillAccounts, killAccounts)
	worlds := make([]*world, lanes)
	for i := range worlds {
		dir := filepath.Join(t.dir, fmt.Sprint(i))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		w, err := newWorld(t.ctx, dir, &fake.AuthOptions{Grace: 24 * time.Hour}, true)
		if err != nil {
			return err
		}
		defer w.close()
		worlds[i] = w
		if err := t.loginAll(w, accounts); err != nil {
			return err
		}
	}
	done := t.spread(lanes, t.goal(10, 10_000), func(lane, i int) {
		t.kill(worlds[lane], accounts, i)
	})
	t.count("SIGKILLs during token writes", done)
	for _, w := range worlds {
		t.survivors(w, accounts)
	}
	t.count("logins lost", 0)
	return nil
}

// loginAll logs all accounts in.
func (t *trial) loginAll(w *world, accounts int) error {
	var group errgroup.Group
	group.SetLimit(4)
	for a := range accounts {
		group.Go(func() error { return w.login(t.ctx, account(a)) })
	}
	return group.Wait()
}

// kill starts a process, kills it, and looks what it left.
func (t *trial) kill(w *world, accounts, i int) {
	p, err := t.start(nil, ChildCommand, "renew", w.dir, w.url, strconv.Itoa(accounts), strconv.Itoa(i*killStride))
	if err != nil {
		t.breaks("start a process: %v", err)
		return
	}
	used := map[int]int64{}
	read := func() bool {
		if !p.out.Scan() {
			return false
		}
		var a int
		var generation int64
		if _, err := fmt.Sscanf(p.out.Text(), "used %d %d", &a, &generation); err != nil {
			t.breaks("a process ended by itself: %s", p.out.Text())
			return false
		}
		used[a] = generation
		return true
	}
	// One in four dies while it starts, opens the store or saves for the first time.
	within := time.Duration(1+t.draw(40)) * time.Millisecond
	if t.draw(4) > 0 {
		read()
		within = time.Duration(t.draw(12_000)) * time.Microsecond
	}
	timer := time.AfterFunc(within, func() { _ = p.cmd.Process.Kill() })
	for read() {
	}
	timer.Stop()
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // it was killed
	t.count("tokens used before", len(used))
	for a, acknowledged := range used {
		if now, err := w.generation(t.ctx, account(a)); t.ctx.Err() == nil && (err != nil || now < acknowledged) {
			t.breaks("generation %d of %s was used, the store has %d (%v)", acknowledged, account(a), now, err)
			t.count("logins lost", 1)
		}
	}
}

// survivors makes a call with every login, and counts what the servers saw.
func (t *trial) survivors(w *world, accounts int) {
	c := newCaller(w.store, w.url)
	defer c.close()
	var wg errgroup.Group
	wg.SetLimit(24)
	for a := range accounts {
		wg.Go(func() error {
			if err := c.call(t.ctx, account(a)); err != nil && t.ctx.Err() == nil {
				t.breaks("%s does not work any more: %v", account(a), err)
				t.count("logins lost", 1)
			}
			return nil
		})
	}
	_ = wg.Wait() // nobody returns an error
	spent := map[string]bool{}
	repeats, refused := 0, 0
	for _, e := range w.as.Requests(fake.EventToken, "refresh_token") {
		token := e.Param("refresh_token")
		if spent[token] {
			repeats++
		}
		spent[token] = true
		if !strings.HasPrefix(e.Detail, "ok") {
			refused++
		}
	}
	t.count("died between the server's commit and the write, asked again", repeats)
	if refused > 0 {
		t.breaks("%d refreshes were refused", refused)
	}
}
