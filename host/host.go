package host

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host/internal/deadline"
	listpool "github.com/usher-mcp/usher/host/internal/lists"
	"github.com/usher-mcp/usher/host/internal/supervise"
	"github.com/usher-mcp/usher/upstream"
)

// Host holds registered servers and their connections. All methods may be used
// concurrently.
type Host struct {
	opt     Options
	dial    dialer
	life    context.Context
	end     context.CancelFunc
	wg      sync.WaitGroup // everything that runs for the Host, except
	readers sync.WaitGroup // lists being read
	places  supervise.Places
	starts  supervise.Slots
	runners supervise.Slots
	count   counters
	made    atomic.Int64       // units
	flights singleflight.Group // dials and lists that all who want the same share

	mu      sync.Mutex // guards what follows
	servers map[string]*registration
	open    map[*live]struct{} // connections that are not gone yet
	closed  bool
}

// registration is a server by name, and its units.
type registration struct {
	srv    *config.Server // never changes, and is shared by all that is made from it
	lazy   bool           // spawned as lazy, or defined so
	pace   *upstream.Pace // of all its connections together
	units  map[Key]*unit
	swept  time.Time // when idle units were last looked for; guarded like units
	lists  *listpool.Pool[*catalog]
	modern atomic.Value // string: its revision, once it is known to have no older one
}

func register(srv *config.Server) *registration {
	return &registration{srv: srv, lazy: srv.IsLazy(), pace: upstream.NewPace(), units: map[Key]*unit{}, lists: newLists()}
}

// New returns a Host without servers. Close it.
func New(opt *Options) *Host { return newHost(opt, dialUpstream) }

func newHost(opt *Options, dial dialer) *Host {
	h := &Host{opt: opt.withDefaults(), dial: dial, servers: map[string]*registration{}, open: map[*live]struct{}{}}
	h.life, h.end = context.WithCancel(context.Background())
	h.places.Resize(h.opt.MaxConnected)
	h.starts = make(supervise.Slots, h.opt.StartConcurrency)
	h.runners = make(supervise.Slots, h.opt.RunnerConcurrency)
	return h
}

// unregister removes a registration, if it still is the one, with all it has.
func (h *Host) unregister(name string, reg *registration) {
	h.mu.Lock()
	if h.servers[name] == reg {
		delete(h.servers, name)
	}
	h.mu.Unlock()
	for _, u := range h.unitsOf(reg) {
		if l := u.renew(true); l != nil {
			l.drain(h.opt.Drain)
		}
	}
}

// connect makes one attempt to connect, so that its error can be told.
func (h *Host) connect(ctx context.Context, k Key) error {
	_, release, err := h.hold(ctx, k)
	if err == nil {
		release()
	}
	return err
}

// Hold connects if need be and keeps the connection from being closed as idle
// until release is called.
func (h *Host) Hold(ctx context.Context, k Key) (release func(), err error) {
	_, release, err = h.hold(ctx, k)
	return release, err
}

// Version returns the revision that the connection of k speaks, connecting if need
// be. Where Options.Connection asks for an older revision and the server is known
// to speak none, that is said without a connection.
func (h *Host) Version(ctx context.Context, k Key) (string, error) {
	u, err := h.unit(k)
	if err != nil {
		return "", err
	}
	if v, ok := u.reg.modern.Load().(string); ok && u.base.Version != "" && v != "" {
		return v, nil
	}
	l, release, err := h.hold(ctx, k)
	if err != nil {
		return "", err
	}
	defer release()
	return l.conn.Version(), nil
}

func (h *Host) hold(ctx context.Context, k Key) (*live, func(), error) {
	for {
		u, err := h.unit(k)
		if err != nil {
			return nil, nil, err
		}
		l, err := u.holdNow(ctx)
		if err == nil {
			return l, sync.OnceFunc(func() { u.release(l) }), nil
		}
		if !errors.Is(err, errReplaced) {
			return nil, nil, err
		}
	}
}

func (u *unit) holdNow(ctx context.Context) (*live, error) {
	t, err := u.admit()
	if err != nil {
		return nil, err
	}
	all, p := deadline.With(ctx, u.srv.Timeouts.Connect+u.srv.Timeouts.Call, nil)
	defer p.End()
	l, err := u.acquire(all)
	if err != nil {
		o := u.noConnection(ctx, t, err, &tries{})
		return nil, u.explain(operation{name: "connect"}, o, tries{})
	}
	u.settle(t, supervise.Neither, nil)
	return l, nil
}

// unit returns the unit of a key, making it if need be.
func (h *Host) unit(k Key) (*unit, error) {
	k = k.normal()
	var made *unit
	for {
		h.mu.Lock()
		closed, reg := h.closed, h.servers[k.Server]
		var u *unit
		if reg != nil {
			if u = reg.units[k]; u == nil && made != nil && made.reg == reg {
				u, reg.units[k] = made, made
			}
		}
		h.mu.Unlock()
		switch {
		case closed:
			return nil, ErrClosed
		case reg == nil:
			return nil, unknownServer(k.Server, h.Names())
		case u != nil:
			return u, nil
		}
		if err := h.sweep(reg); err != nil {
			return nil, err
		}
		made = h.newUnit(k, reg) // without a lock: it asks the program around us
	}
}

// units returns all units there are.
func (h *Host) units() []*unit {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []*unit
	for _, reg := range h.servers {
		all = slices.AppendSeq(all, maps.Values(reg.units))
	}
	return all
}

func (h *Host) unitsOf(reg *registration) []*unit {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Values(reg.units))
}

// begin counts one more thing that runs for the Host; false when it is closed.
func (h *Host) begin(wg *sync.WaitGroup) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	wg.Add(1)
	return true
}

// spawn runs f in the background, unless the Host is closed.
func (h *Host) spawn(f func()) {
	if h.begin(&h.wg) {
		go func() {
			defer h.wg.Done()
			f()
		}()
	}
}

// Close closes all connections, in parallel, and returns when all are gone.
// In-flight requests fail.
func (h *Host) Close() {
	h.mu.Lock()
	h.closed = true
	all := slices.Collect(maps.Keys(h.open))
	h.mu.Unlock()
	h.end()
	h.readers.Wait() // they give up at once; a connection is not closed under them
	for _, u := range h.units() {
		u.renew(true)
	}
	shutAll(all)
	h.wg.Wait()
}

func shutAll(all []*live) {
	var wg sync.WaitGroup
	for _, l := range all {
		wg.Go(l.shut)
	}
	wg.Wait()
}
