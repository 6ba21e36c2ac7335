package login

import (
	"context"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/internal/app"
)

// board shows the phases of all logins: redrawn in place on a terminal, where pastes
// are taken meanwhile; a line per step elsewhere; NDJSON with --json.
type board struct {
	f      *cmdutil.Factory
	d      manyLogins
	enc    *bulk.Encoder
	live   *cmdutil.Live // nil when it is not drawn
	keys   bool          // the terminal gives every key at once
	line   cmdutil.LineEditor
	leave  func() // the person wants to
	cancel context.CancelFunc
	work   sync.WaitGroup
	once   sync.Once
}

// newBoard begins to show. Leave is called when the person types Ctrl-C; it may be
// called more than once.
func newBoard(f *cmdutil.Factory, d manyLogins, asJSON bool, leave func()) *board {
	ctx, cancel := context.WithCancel(context.Background())
	b := &board{f: f, d: d, leave: leave, cancel: cancel}
	sub := d.Subscribe()
	switch {
	case asJSON:
		b.enc = bulk.NewEncoder(f.IO.Out)
	case f.IO.ErrTTY:
		b.live = screen(f, asJSON)
		b.work.Go(func() { b.follow(ctx) })
	}
	b.work.Go(func() {
		defer sub.Close()
		for e := range sub.All(ctx) {
			b.event(e)
		}
	})
	return b
}

// screen makes room for a live part at the end of the terminal: what any code prints from
// then on goes above it. It is nil when nothing is drawn. It must come
// before the library is opened, which keeps what it logs to.
func screen(f *cmdutil.Factory, asJSON bool) *cmdutil.Live {
	if there, ok := f.IO.Err.(*cmdutil.Live); ok {
		return there
	}
	if !f.IO.ErrTTY || asJSON {
		return nil
	}
	below := f.IO
	l := &cmdutil.Live{Out: below.Err, Size: below.Size}
	f.IO.Err = l
	return l
}

// unlockFirst has the passphrase of the store asked for before there is a board.
func unlockFirst(ctx context.Context, f *cmdutil.Factory, h *app.App) error {
	if h.Keys() == nil || !f.IO.InTTY {
		return nil
	}
	_, err := h.Keys().Sealing(ctx)
	return err
}

// outcome tells of a login that was begun, skipped or failed.
func (b *board) outcome(o bulk.Outcome) {
	if b.enc != nil {
		_ = b.enc.Outcome(o) // a reader that left is noticed at the end
	}
}

func (b *board) event(e bulk.Event) {
	switch {
	case b.enc != nil:
		_ = b.enc.Event(e) // a reader that left is noticed at the end
	case b.live == nil && e.Phase.Ended():
		b.f.Note("  %-16s %s", e.Server, phaseWords(e.Phase, e.Detail))
	}
}

// redrawEvery is how often a board that nothing happens on is drawn: it shows seconds.
const redrawEvery = time.Second

// follow draws until ctx ends: whenever something happens, the terminal gets another
// size, a key is typed, or a second has passed.
func (b *board) follow(ctx context.Context) {
	news := b.d.Subscribe()
	defer news.Close()
	moved := make(chan struct{}, 1)
	b.work.Go(func() {
		for range news.All(ctx) {
			select {
			case moved <- struct{}{}:
			default:
			}
		}
	})
	tick := time.NewTicker(redrawEvery)
	defer tick.Stop()
	resized, stop := cmdutil.Resizes()
	defer stop()
	typed, restore := b.keyboard(ctx)
	defer restore()
	for {
		b.live.Draw(b.view().lines)
		select {
		case <-moved:
		case <-tick.C:
		case <-resized:
		case p, more := <-typed:
			if !more {
				typed = nil
			}
			b.take(ctx, p)
		case <-ctx.Done():
			b.live.End(b.view().last())
			return
		}
	}
}

func (b *board) view() boardView {
	return boardView{
		rows: b.d.Rows(), now: time.Now(), colour: b.f.IO.Paints(b.f.IO.ErrTTY), prompt: b.keys, typed: b.line.Shown(),
	}
}

// take hands what was pasted to the login it belongs to; the board goes on meanwhile.
func (b *board) take(ctx context.Context, p []byte) {
	lines, leave := b.line.Feed(p)
	if leave {
		b.leave()
	}
	if len(lines) == 0 {
		return
	}
	b.work.Go(func() {
		for _, line := range lines {
			if _, err := b.d.Paste(ctx, "", line); err != nil && ctx.Err() == nil {
				b.f.Report(err)
			}
		}
	})
}

// hasKeyboard reports whether a board takes pastes by itself.
func hasKeyboard(f *cmdutil.Factory) bool {
	_, ok := f.IO.In.(*os.File)
	return ok && f.IO.InTTY && f.IO.ErrTTY
}

// keyboard makes the terminal give every key at once, until restore. The reader is
// left behind then: a read from a terminal cannot be cancelled, and the program ends.
func (b *board) keyboard(ctx context.Context) (typed <-chan []byte, restore func()) {
	if !hasKeyboard(b.f) {
		return nil, func() {}
	}
	in := b.f.IO.In.(*os.File)
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, func() {} // answers can still come to the loopback address
	}
	b.keys = true
	_, _ = b.live.Out.Write([]byte(cmdutil.MarksPastes)) // a terminal that does not know it ignores it
	out := make(chan []byte)
	go func() {
		defer close(out)
		buf := make([]byte, 4096)
		for {
			n, err := in.Read(buf)
			if err != nil {
				return
			}
			select {
			case out <- append([]byte(nil), buf[:n]...):
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, func() {
		_, _ = b.live.Out.Write([]byte(cmdutil.PlainPastes))
		_ = term.Restore(int(in.Fd()), before) // nothing is left to be done if this fails
	}
}

// close ends the board; what has happened by then is shown.
func (b *board) close() {
	b.once.Do(func() {
		b.cancel()
		b.work.Wait()
	})
}
