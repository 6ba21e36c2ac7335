package torture

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
)

// callbackServers is how many servers are logged in at once, each with an
// authorization server of its own.
const callbackServers = 5

// callbacks logs several servers in at once on one listener, and sends it what a
// browser, a scanner and an enemy on the same machine might, in between the real
// answers. Every login must end at its own server, after one exchange of one code.
func callbacks(t *trial) error {
	store, err := openStore(t.ctx, filepath.Join(t.dir, "store"))
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // nothing in it is wanted any more
	e := auth.New(store, nil)
	defer func() { _ = e.Close() }()
	var targets []*target
	for i := range callbackServers {
		w, err := newTarget(fmt.Sprint("s", i))
		if err != nil {
			return err
		}
		defer w.stop()
		targets = append(targets, w)
	}
	done := 0
	for ; done < t.goal(3, 1000) && t.on(); done++ {
		if err := t.hostileRun(e, targets); err != nil {
			return err
		}
	}
	t.count("runs under hostile callbacks", done)
	t.count("logins at the same time", callbackServers)
	t.count("hostile requests", 0)
	t.count("codes at the wrong login", 0)
	return nil
}

// target is a server to log in to.
type target struct {
	as    *fake.AuthServer
	srv   config.Server
	a     auth.Account
	stops []func()
}

func newTarget(name string) (*target, error) {
	w := &target{as: fake.NewAuth(&fake.AuthOptions{Name: name}), a: auth.Account{Server: name}}
	_, stop, err := w.as.Listen()
	if err != nil {
		return nil, err
	}
	prot := &fake.Protected{}
	address, stopResource, err := serve(w.as.Protect(prot, http.NotFoundHandler()))
	if err != nil {
		stop()
		return nil, err
	}
	w.stops = []func(){stop, stopResource}
	prot.Resource = address + "/mcp"
	w.srv = config.Server{Name: name, Transport: config.TransportHTTP, URL: prot.Resource, OAuth: &config.OAuth{}}
	return w, nil
}

func (w *target) stop() {
	for _, stop := range w.stops {
		stop()
	}
}

// hostileRun is one run.
func (t *trial) hostileRun(e *auth.Engine, targets []*target) error {
	var wg sync.WaitGroup
	order := t.draw(len(targets))
	plan := make([][]int, len(targets)) // drawn here, so that the seed decides
	for i := range plan {
		plan[i] = []int{t.draw(len(hostile())), t.draw(len(hostile())), t.draw(len(hostile())), t.draw(len(hostile()))}
	}
	for i := range targets {
		w, kinds := targets[(i+order)%len(targets)], plan[i]
		wg.Go(func() { t.hostileLogin(e, w, kinds) })
	}
	wg.Wait()
	return t.ctx.Err()
}

func (t *trial) hostileLogin(e *auth.Engine, w *target, kinds []int) {
	before := len(w.as.Requests(fake.EventToken, "authorization_code"))
	p, err := e.Begin(t.ctx, w.a, w.srv, &auth.LoginOptions{Listen: true})
	if err != nil {
		t.breaks("begin the login to %s: %v", w.a, err)
		return
	}
	back, err := w.as.Consent(t.ctx, p.AuthorizeURL)
	if err != nil {
		t.breaks("consent to %s: %v", w.a, err)
		return
	}
	for _, k := range kinds {
		if status := hostile()[k].send(t.ctx, p.RedirectURI, back); status < 400 && !hostile()[k].harmless {
			t.breaks("%s: %s was answered with HTTP %d", w.a, hostile()[k].name, status)
		}
		t.count("hostile requests", 1)
	}
	if n := len(w.as.Requests(fake.EventToken, "authorization_code")); n != before && t.ctx.Err() == nil {
		t.breaks("%s: a hostile request led to %d exchanges", w.a, n-before)
	}
	for range 2 { // browsers ask twice
		if status := request(t.ctx, http.MethodGet, back.String(), nil); status != http.StatusOK && t.ctx.Err() == nil {
			t.breaks("%s: the real answer got HTTP %d", w.a, status)
		}
	}
	l, err := e.Wait(t.ctx, p.State)
	switch {
	case t.ctx.Err() != nil:
	case err != nil:
		t.breaks("login to %s: %v", w.a, err)
	case l.Account.Server != w.a.Server || l.Issuer != w.as.Issuer():
		t.breaks("the login to %s ended as one to %s of %s", w.a, l.Account, l.Issuer)
		t.count("codes at the wrong login", 1)
	}
	all := w.as.Requests(fake.EventToken, "authorization_code")
	if t.ctx.Err() == nil && (len(all) != before+1 || !strings.HasPrefix(all[before].Detail, "ok")) {
		t.breaks("%s: %d exchanges for one login", w.a, len(all)-before)
	}
}

// nuisance is one kind of request that is not the answer of a consent page.
type nuisance struct {
	name     string
	harmless bool // it may be answered with a page, since it does nothing
	method   string
	header   map[string]string
	address  func(callback string, back *url.URL) string
}

func (n nuisance) send(ctx context.Context, callback string, back *url.URL) int {
	return request(ctx, n.method, n.address(callback, back), n.header)
}

// hostile lists them. The list is long, and every start of the program would pay for
// one that is made ahead.
var hostile = sync.OnceValue(func() []nuisance {
	return []nuisance{
		{"favicon", false, "GET", nil, func(cb string, _ *url.URL) string { return strings.TrimSuffix(cb, "/callback") + "/favicon.ico" }},
		{"a guessed state", false, "GET", nil, with("state", "guess")},
		{"no state", false, "GET", nil, with("state", "")},
		{"another issuer", false, "GET", nil, with("iss", "https://evil.example")},
		{"no code", false, "GET", nil, with("code", "")},
		{"a foreign error", false, "GET", nil, func(cb string, _ *url.URL) string { return cb + "?state=other&error=access_denied" }},
		{"a broken query", false, "GET", nil, func(cb string, _ *url.URL) string { return cb + "?code=%zz" }},
		{"POST", false, "POST", nil, genuine},
		{"HEAD", true, "HEAD", nil, genuine},
		{"OPTIONS", true, "OPTIONS", nil, genuine},
		{"prefetch", false, "GET", map[string]string{"Sec-Purpose": "prefetch"}, genuine},
		{"another host", false, "GET", map[string]string{"Host": "evil.example"}, genuine},
		{"a long header", false, "GET", map[string]string{"X-Long": strings.Repeat("x", 64<<10)}, genuine},
	}
})

func genuine(_ string, back *url.URL) string { return back.String() }

// with is the real answer with one parameter changed, or removed when value is "".
func with(parameter, value string) func(string, *url.URL) string {
	return func(_ string, back *url.URL) string {
		q := back.Query()
		q.Set(parameter, value)
		if value == "" {
			q.Del(parameter)
		}
		changed := *back
		changed.RawQuery = q.Encode()
		return changed.String()
	}
}

// request returns the status of one request, 599 when there was no answer.
func request(ctx context.Context, method, address string, header map[string]string) int {
	req, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return 599
	}
	for k, v := range header {
		if k == "Host" {
			req.Host = v
		}
		req.Header.Set(k, v)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return 599
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}
