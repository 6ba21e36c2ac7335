package gate

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"pgregory.net/rapid"

	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
)

// stream is an open subscription of a client.
type stream struct {
	client client
	at     place
	follow []follow
	told   bool // something has changed that the client may hear of
	stop   context.CancelFunc
	ready  chan struct{} // closed when it is acknowledged
	done   chan struct{} // closed when it has ended

	mu    sync.Mutex // guards what follows
	lines []string   // messages since the last check
	count map[string]int
}

// follow is a resource that a stream follows.
type follow struct {
	uri    string // as it was asked for
	spot   spot
	own    string // at the server
	steady bool   // it was allowed all the time, so updates must come
}

// listen opens a stream for changes of lists and of some resources.
func (w *run) listen(rt *rapid.T) {
	if len(w.streams) >= 4 {
		w.hangUp(rt)
	}
	sc := scene{rapid.SampledFrom(modelClients).Draw(rt, "client"), rapid.SampledFrom(places).Draw(rt, "place"), nil}
	uris := []string{w.address(rt), w.address(rt)}
	text, err := json.Marshal(uris)
	must(rt, err)
	params := fmt.Sprintf(`"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":%s}`, text)
	v, _ := w.entry(sc.client, sc.at)
	if v == unknown {
		w.lab.take()
		w.gone(rt, sc, w.ask(rt, sc, mcp.MethodListen, "", params))
		return
	}
	s := &stream{client: sc.client, at: sc.at, ready: make(chan struct{}), done: make(chan struct{}), count: map[string]int{}}
	for _, uri := range slices.Compact(uris) {
		switch to, rest := w.st.route(sc.client, sc.at, uri); {
		case sc.at.kind == "joined" && len(to) == 1:
			s.follow = append(s.follow, follow{uri, to[0], rest, true})
		case sc.at.kind == "single":
			s.follow = append(s.follow, follow{uri, spot{sc.at.server, sc.at.account}, uri, true})
		}
	}
	if sc.at.kind == "single" && len(w.st.wholes(sc.client, sc.at)) == 0 {
		s.follow = nil
	}
	for _, one := range w.st.reach(sc.client, sc.at) { // the same change may be heard again on another connection
		s.told = s.told || time.Since(w.said[one.server]) < 3*time.Second
	}
	ctx, stop := context.WithCancel(rt.Context())
	s.stop = stop
	head := map[string]string{wire.HeaderVersion: mcp.Latest, wire.HeaderMethod: mcp.MethodListen}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"_meta":{%q:"2026-07-28",%q:{}},%s}}`, mcp.MethodListen, mcp.MetaVersion, mcp.MetaClientCaps, params)
	req := w.lab.request(rt, ctx, w.lab.tokens[sc.name].text, http.MethodPost, sc.at, body, head)
	go s.run(w.lab.http, req)
	select {
	case <-s.ready:
	case <-s.done:
	case <-time.After(10 * time.Second):
		rt.Fatalf("%s: a subscription is not acknowledged", sc)
	}
	w.streams = append(w.streams, s)
}

// run reads what comes until the stream ends.
func (s *stream) run(c *http.Client, req *http.Request) {
	defer close(s.done)
	res, err := c.Do(req)
	if err != nil {
		return
	}
	defer res.Body.Close()
	acknowledged := false
	for in := bufio.NewScanner(res.Body); in.Scan(); {
		line, ok := strings.CutPrefix(in.Text(), "data: ")
		if !ok {
			continue
		}
		s.mu.Lock()
		s.lines = append(s.lines, line)
		s.mu.Unlock()
		if !acknowledged {
			acknowledged = true
			close(s.ready)
		}
	}
}

func (s *stream) close() {
	s.stop()
	<-s.done
}

// ends waits until the other side ends the stream.
func (s *stream) ends(rt *rapid.T) {
	select {
	case <-s.done:
	case <-time.After(5 * time.Second):
		rt.Fatalf("a stream of %s at %s outlives its token", s.client.name, s.at.path)
	}
	s.stop()
}

func (w *run) hangUp(rt *rapid.T) {
	if len(w.streams) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.streams)-1).Draw(rt, "stream")
	w.streams[i].close()
	w.streams = slices.Delete(w.streams, i, i+1)
}

// allowed reports whether a stream may hear of a resource now.
func (s *stream) allowed(st *state, f follow) bool {
	if _, there := st.profiles[s.at.profile]; s.at.profile != "" && !there {
		return false
	}
	v, _ := st.may(s.client, s.at, theWhole, f.spot.server, f.spot.label, "")
	return v == fine
}

// changed tells the streams that the state has changed; with servers: that one of
// these has announced it, and nothing else.
func (w *run) changed(servers ...string) {
	for _, s := range w.streams {
		for i := range s.follow {
			s.follow[i].steady = s.follow[i].steady && s.allowed(w.st, s.follow[i])
		}
		heard := len(servers) == 0
		for _, one := range w.st.reach(s.client, s.at) {
			heard = heard || slices.Contains(servers, one.server)
		}
		s.told = s.told || heard
	}
}

// touch has a server say that a resource has changed, and waits for those who must
// hear of it.
func (w *run) touch(rt *rapid.T) {
	server := rapid.SampledFrom(modelServers).Draw(rt, "server")
	uri := rapid.SampledFrom(urisOf(server)).Draw(rt, "uri")
	before := map[*stream]map[string]int{}
	for _, s := range w.streams {
		s.check(rt, w.st)
		before[s] = map[string]int{}
		for _, f := range s.follow {
			before[s][f.uri] = s.count[f.uri]
		}
	}
	w.lab.servers[server].Touch(uri)
	for _, s := range w.streams {
		for _, f := range s.follow {
			if f.spot.server != server || f.own != uri || !f.steady {
				continue
			}
			for deadline := time.Now().Add(10 * time.Second); s.count[f.uri] == before[s][f.uri]; <-time.After(2 * time.Millisecond) {
				s.check(rt, w.st)
				if time.Now().After(deadline) {
					rt.Fatalf("%s at %s does not hear of %s of %s", s.client.name, s.at.path, f.uri, f.spot)
				}
			}
		}
	}
}

// check looks at what has come in.
func (s *stream) check(rt *rapid.T, st *state) {
	s.mu.Lock()
	lines := s.lines
	s.lines = nil
	s.mu.Unlock()
	for _, line := range lines {
		var m struct {
			Method string
			Params struct{ URI string }
		}
		must(rt, json.Unmarshal([]byte(line), &m))
		switch {
		case strings.Contains(line, "CANARY"):
			rt.Fatalf("LEAK: %s at %s hears %s", s.client.name, s.at.path, line)
		case m.Method == mcp.MethodNotifyUpdated:
			s.count[m.Params.URI]++
			if !slices.ContainsFunc(s.follow, func(f follow) bool { return f.uri == m.Params.URI && s.allowed(st, f) }) {
				rt.Fatalf("LEAK: %s at %s hears %s", s.client.name, s.at.path, line)
			}
		case strings.HasSuffix(m.Method, "/list_changed") && !s.told:
			rt.Fatalf("LEAK: %s at %s hears %s, but nothing that it sees has changed", s.client.name, s.at.path, line)
		}
	}
}
