package replicas

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/sqlstore"
)

// ask calls a tool at one address, over a connection of its own, and returns the
// answer's text.
func (w *world) ask(base, path, tool, arguments string) string {
	w.t.Helper()
	req, err := toolRequest(w.t.Context(), "http://"+base+path, tool, arguments)
	if err != nil {
		w.t.Fatal(err)
	}
	status, body := w.answer(req)
	return fmt.Sprintf("%d %s", status, body)
}

func (w *world) answer(req *http.Request) (status int, body string) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
	resp, err := client.Do(req)
	if err != nil {
		w.t.Error(err)
		return 0, ""
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Error(err)
	}
	return resp.StatusCode, string(text)
}

// pendings is how many logins wait for a person.
func pendings(t *testing.T, url string) int {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }() // it was only read
	recs, err := store.List(t.Context(), vault.KindPending, vault.Local)
	if err != nil {
		t.Fatal(err)
	}
	return len(recs)
}

var authorizeURL = regexp.MustCompile(`http://127\.0\.0\.1:\d+/authorize\?[^\s)"\\]+`)

// A login is begun at one replica, and a browser that asks twice brings the answer to
// the other and to the first at the same time: the code is traded once, both pages say
// that all is well, and both replicas use the login.
func TestCallbackAtAnyReplica(t *testing.T) {
	as := fake.NewAuth(nil)
	_, stop, err := as.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	store := schema(t)
	w := newWorld(t, store)
	w.public = true
	name := w.protect(as)
	w.start(2)
	said := w.ask(w.lb.addr, "/meta/mcp", "mcp", `{"action":"login","server":"`+name+`"}`)
	page := html.UnescapeString(strings.ReplaceAll(authorizeURL.FindString(said), `\u0026`, "&"))
	if page == "" || pendings(t, store) != 1 {
		t.Fatalf("the login was not begun: %s", said)
	}
	back, err := as.Consent(t.Context(), page)
	if err != nil {
		t.Fatal(err)
	}
	if back.Host != w.lb.addr {
		t.Fatalf("the answer goes to %s, not to the balancer", back)
	}
	as.Set("token-slow=300") // both are in flight at once
	visit := func() {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, back.String(), nil)
		if err != nil {
			t.Error(err)
			return
		}
		if status, body := w.answer(req); status != http.StatusOK || !strings.Contains(body, "You are logged in") {
			t.Errorf("HTTP %d %s", status, body)
		}
	}
	w.lb.before(w.all[1], w.all[0])
	var wg sync.WaitGroup
	wg.Go(visit)
	wg.Go(visit)
	wg.Wait()
	visit() // and once more at each
	visit()
	if n := len(as.Requests(fake.EventToken, "authorization_code")); n != 1 {
		t.Errorf("%d codes were traded", n)
	}
	if n := pendings(t, store); n != 0 {
		t.Errorf("%d logins still wait", n)
	}
	for i, r := range w.all {
		if got := w.ask(r.addr, "/servers/"+name+"/mcp", "add", `{"a":1,"b":2}`); !strings.Contains(got, `"text":"3"`) {
			t.Errorf("replica %d does not use the login: %s", i, got)
		}
	}
}
