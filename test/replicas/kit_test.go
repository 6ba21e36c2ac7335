package replicas

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/test/need"
	_ "github.com/usher-mcp/usher/vault/sqlstore" // the driver, for a schema of our own
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// program builds usher once.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "usher-replicas")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "usher")
	out, err := exec.Command("go", "build", "-o", path, "../../cmd/usher").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// world is what the replicas share.
type world struct {
	t       *testing.T
	exe     string
	dir     string
	env     []string
	servers map[string]any
	all     []*replica
	lb      *balancer
	public  bool // the replicas know the balancer's address as theirs
}

// schema makes an empty schema in the database and returns its URL.
func schema(t *testing.T) string {
	t.Helper()
	base := need.Postgres(t)
	name := "replicas_" + strings.ToLower(rand.Text()[:10])
	db, err := sql.Open("pgx", base)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.ExecContext(t.Context(), "CREATE SCHEMA "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = db.ExecContext(context.Background(), "DROP SCHEMA "+name+" CASCADE") })
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String()
}

// newWorld prepares a place for replicas on the store.
func newWorld(t *testing.T, store string) *world {
	t.Helper()
	exe, err := program()
	if err != nil {
		t.Fatal(err)
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	w := &world{t: t, exe: exe, dir: t.TempDir(), servers: map[string]any{}}
	w.env = append(os.Environ(), "USHER_STORE="+store, "USHER_KEY=env:REPLICA_KEY", "REPLICA_KEY="+hex.EncodeToString(key))
	return w
}

// protect adds a server behind a login and returns its name.
func (w *world) protect(as *fake.AuthServer) string {
	name := fmt.Sprintf("s%d", len(w.servers))
	f := fake.New(&fake.Options{Name: name, Ledger: fake.DiscardLedger()})
	p := &fake.Protected{}
	hs := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		as.Protect(p, f.Handler()).ServeHTTP(rw, r)
	}))
	p.Resource = hs.URL + "/mcp"
	w.t.Cleanup(func() {
		f.Close()
		hs.Close()
	})
	w.servers[name] = map[string]any{"url": p.Resource}
	return name
}

// home writes the configuration of one process.
func (w *world) home(name string) string {
	w.t.Helper()
	dir := filepath.Join(w.dir, name)
	text, err := json.Marshal(map[string]any{"mcpServers": w.servers})
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "mcp.json"), text, 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return dir
}

// login logs a server in, as a person would with another process.
func (w *world) login(name string, as *fake.AuthServer) {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), w.exe, "login", name, "--no-browser", "--json", "--wait", "30s")
	cmd.Env = append(w.env, "USHER_HOME="+w.home("login"))
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var line struct {
			URL string `json:"authorize_url"`
		}
		_ = json.Unmarshal(lines.Bytes(), &line) // others have no address
		if line.URL != "" {
			w.consent(as, line.URL)
		}
	}
	if err := cmd.Wait(); err != nil {
		w.t.Fatalf("log in to %s: %v: %s", name, err, said.String())
	}
}

func (w *world) consent(as *fake.AuthServer, page string) {
	back, err := as.Consent(w.t.Context(), page)
	if err != nil {
		w.t.Fatal(err)
	}
	resp, err := http.Get(back.String())
	if err != nil {
		w.t.Fatal(err)
	}
	_ = resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
}

// replica is one `usher serve`.
type replica struct {
	w    *world
	addr string
	home string
	log  *os.File

	kills atomic.Int64 // twice as many; odd while it dies

	mu  sync.Mutex // guards cmd
	cmd *exec.Cmd
}

// start starts n replicas and the balancer before them.
func (w *world) start(n int) {
	w.t.Helper()
	w.lb = newBalancer(w.t)
	for i := range n {
		addr, err := need.Address()
		if err != nil {
			w.t.Fatal(err)
		}
		r := &replica{w: w, addr: addr, home: w.home(fmt.Sprintf("r%d", i))}
		if r.log, err = os.Create(filepath.Join(r.home, "log")); err != nil {
			w.t.Fatal(err)
		}
		w.all = append(w.all, r)
		r.run()
		w.t.Cleanup(r.end)
	}
	w.lb.before(w.all...)
	for _, r := range w.all {
		r.await()
	}
}

func (r *replica) run() {
	cmd := exec.Command(r.w.exe, "serve", "--http", r.addr, "--no-console")
	cmd.Env = append(slices.Clone(r.w.env), "USHER_HOME="+r.home)
	if r.w.public {
		cmd.Env = append(cmd.Env, "USHER_GATEWAY_PUBLIC_URL=http://"+r.w.lb.addr)
	}
	cmd.Stdout, cmd.Stderr = r.log, r.log
	if err := cmd.Start(); err != nil {
		r.w.t.Error(err)
		return
	}
	r.mu.Lock()
	r.cmd = cmd
	r.mu.Unlock()
}

// kill ends the replica as a power cut does.
func (r *replica) kill() {
	r.kills.Add(1)
	r.mu.Lock()
	cmd := r.cmd
	r.cmd = nil
	r.mu.Unlock()
	if cmd != nil {
		_ = cmd.Process.Kill() // gone is what it is to be
		_ = cmd.Wait()
	}
	r.kills.Add(1)
}

// end ends the replica in order, and shows its log when the test failed.
func (r *replica) end() {
	r.mu.Lock()
	cmd := r.cmd
	r.cmd = nil
	r.mu.Unlock()
	if cmd == nil {
		return // killed, or ended before
	}
	_ = cmd.Process.Signal(os.Interrupt)
	if err := cmd.Wait(); err != nil {
		r.w.t.Errorf("replica at %s: %v", r.addr, err)
	}
	_ = r.log.Close()
	if r.w.t.Failed() {
		text, _ := os.ReadFile(r.log.Name())
		r.w.t.Logf("%s:\n%.3000s", r.addr, text)
	}
}

// await returns when the replica takes requests.
func (r *replica) await() {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	deadline := time.After(time.Minute)
	for {
		if resp, err := client.Get("http://" + r.addr + "/readyz"); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-deadline:
			r.w.t.Errorf("the replica at %s does not start", r.addr)
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}
