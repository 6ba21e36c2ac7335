package replicas

import (
	"encoding/json"
	"io"
	"net"
	"net/url"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/test/need"
)

// line is a way to the database that can be cut and mended.
type line struct {
	t        *testing.T
	to, addr string
	wg       sync.WaitGroup

	mu       sync.Mutex // guards what follows
	listener net.Listener
	conns    []net.Conn
}

func newLine(t *testing.T, to string) *line {
	l := &line{t: t, to: to, addr: "127.0.0.1:0"}
	l.mend()
	t.Cleanup(l.cut)
	return l
}

// mend listens, at the same address as before.
func (l *line) mend() {
	l.t.Helper()
	ln, err := net.Listen("tcp", l.addr)
	if err != nil {
		l.t.Fatal(err)
	}
	l.mu.Lock()
	l.listener, l.addr = ln, ln.Addr().String()
	l.mu.Unlock()
	l.wg.Go(func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", l.to)
			if err != nil {
				_ = near.Close() // as a refused connection
				continue
			}
			l.mu.Lock()
			l.conns = append(l.conns, near, far)
			l.mu.Unlock()
			l.wg.Go(func() { _, _ = io.Copy(far, near); _ = far.Close() })
			l.wg.Go(func() { _, _ = io.Copy(near, far); _ = near.Close() })
		}
	})
}

// cut ends all connections and refuses new ones, as a database that is stopped does.
func (l *line) cut() {
	l.mu.Lock()
	_ = l.listener.Close()
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
	l.mu.Unlock()
	l.wg.Wait()
}

// away asks usher status whether a replica can reach its store.
func (r *replica) away() bool {
	cmd := exec.Command(r.w.exe, "status", "--json")
	cmd.Env = append(r.w.env, "USHER_HOME="+r.home)
	out, err := cmd.Output()
	if err != nil {
		r.w.t.Fatalf("usher status: %v", err)
	}
	var board struct {
		Ushers []struct {
			Store struct {
				Away bool `json:"away"`
			} `json:"store"`
		} `json:"ushers"`
	}
	if err := json.Unmarshal(out, &board); err != nil || len(board.Ushers) != 1 {
		r.w.t.Fatalf("usher status: %v: %s", err, out)
	}
	return board.Ushers[0].Store.Away
}

// PostgreSQL is stopped under load: calls with good tokens go on, status says what is
// wrong, and afterwards everything is as before.
func TestDatabaseAway(t *testing.T) {
	outage := 2 * time.Second
	if need.Proof() {
		outage = 10 * time.Second
	}
	direct := schema(t)
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	db := newLine(t, u.Host)
	u.Host = db.addr
	as := fake.NewAuth(&fake.AuthOptions{Grace: grace})
	_, stop, err := as.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	w := newWorld(t, u.String())
	names := []string{w.protect(as), w.protect(as)}
	for _, name := range names {
		w.login(name, as)
	}
	w.start(2)
	warm := w.call(4, names, time.Millisecond)
	<-time.After(300 * time.Millisecond)
	warm.end(t, 0)
	if w.all[0].away() {
		t.Error("the store is away from the beginning")
	}
	during := w.call(4, names, time.Millisecond)
	db.cut()
	end := time.After(outage)
	if !w.all[0].away() {
		t.Error("status does not say that the store is away")
	}
	<-end
	during.end(t, 0)
	db.mend()
	as.Expire() // now the store is needed
	after := w.call(4, names, time.Millisecond)
	<-time.After(time.Second)
	after.end(t, 0)
	if w.all[0].away() {
		t.Error("status says that the store is away when it is back")
	}
	if s := refreshes(as); s.distinct != len(names) || len(s.repeated) > 0 || s.refused > 0 {
		t.Errorf("%d refreshes of %d logins, %d of them again, %d refused", s.distinct, len(names), len(s.repeated), s.refused)
	}
}
