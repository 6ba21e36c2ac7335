package console

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/host"
)

var timeZero time.Time

// watch follows a page over a real connection.
func (v *visitor) watch(at string) <-chan news {
	v.t.Helper()
	srv := httptest.NewServer(v.c)
	v.t.Cleanup(srv.Close)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return listen(v.t, client, srv.URL+"/console/events?at="+url.QueryEscape(at), v.cookie)
}

// until waits for a region that holds a text.
func until(t *testing.T, from <-chan news, id, text string) string {
	t.Helper()
	for n := range from {
		if n.name != "region" {
			continue
		}
		var r region
		if err := json.Unmarshal([]byte(n.data), &r); err != nil {
			t.Fatal(err)
		}
		if r.ID == id && strings.Contains(r.HTML, text) {
			return r.HTML
		}
	}
	t.Fatalf("the stream ended before %s held %q", id, text)
	return ""
}

// A page follows what happens: only what reads differently is sent.
func TestPageFollows(t *testing.T) {
	one := row("a", host.Connected)
	one.LastCall = time.Now().Add(-90 * time.Minute)
	s := &scene{servers: []Server{one}}
	v := visit(t, newConsole(t, s, &Options{Tick: 10 * time.Millisecond, KeepAlive: 5 * time.Millisecond}))
	events := v.watch("/")
	until(t, events, "top", "Connect all")
	until(t, events, "side", `data-state="connected"`)
	until(t, events, "page", "All 1 servers are connected")
	s.set(func(s *scene) { s.servers[0].State = host.Failed })
	if side := until(t, events, "side", `data-state="failed"`); strings.Contains(side, "<html") {
		t.Error("a whole page was sent")
	}
	until(t, events, "page", "The next call tries again")
	for range 3 {
		if n := <-events; n.name != "comment" {
			t.Errorf("without news it said %+v", n)
		}
	}
	s.set(func(s *scene) { s.calls = []Call{{Number: 7, Account: "a", Tool: "t", Outcome: "ok"}} })
	until(t, events, "page", `id="c7"`)
}

// Streams end with the console, with the browser and with the session, at once.
func TestPageStreamEnds(t *testing.T) {
	for name, end := range map[string]func(v *visitor, leave context.CancelFunc){
		"drained": func(v *visitor, _ context.CancelFunc) { v.c.Drain() },
		"left":    func(_ *visitor, leave context.CancelFunc) { leave() },
		"out": func(v *visitor, _ context.CancelFunc) {
			v.c.door.mu.Lock()
			v.c.door.sessions = nil
			v.c.door.mu.Unlock()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scene{}
				v := visit(t, newConsole(t, s, nil))
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				ended := make(chan string, 1)
				go func() {
					r := ask(v.c, "/console/events?at=/", func(r *http.Request) {
						r.AddCookie(v.cookie)
						*r = *r.WithContext(ctx)
					})
					ended <- body(t, r)
				}()
				synctest.Wait()
				end(v, leave)
				time.Sleep(2 * v.c.opt.Tick)
				synctest.Wait()
				select {
				case text := <-ended:
					if said := strings.Contains(text, "event: over"); said != (name == "out") {
						t.Errorf("said that it is over: %v", said)
					}
				default:
					t.Error("the stream goes on")
					leave()
				}
				if n := s.bus.Subscribers(); n != 0 {
					t.Errorf("%d subscriptions left", n)
				}
			})
		})
	}
}

func TestPageStreamsAreBounded(t *testing.T) {
	v := visit(t, newConsole(t, &scene{}, nil))
	v.c.streams.Store(maxStreams)
	if status, _ := v.get("/console/events?at=/"); status != http.StatusTooManyRequests {
		t.Errorf("HTTP %d", status)
	}
}
