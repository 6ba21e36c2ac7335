package auth

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"
)

// listens reports whether the address of a login accepts connections.
func listens(t *testing.T, p *Pending) bool {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", mustURL(t, p.RedirectURI).Host)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

// The listener closes a minute after the last login ended, not before, and opens at
// the same address for the next one.
func TestListenerClosesWhenIdle(t *testing.T) {
	w := newWorld(t, nil, nil)
	p, err := w.e.Begin(t.Context(), w.a, w.srv, &LoginOptions{Listen: true})
	if err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(5 * time.Minute)
	if w.e.callbacks.closeIdle(t.Context(), later) || !listens(t, p) {
		t.Fatal("closed while a login waits")
	}
	if _, err := w.consent(p); err != nil {
		t.Fatal(err)
	}
	if w.e.callbacks.closeIdle(t.Context(), later.Add(listenerLinger-time.Second)) || !listens(t, p) {
		t.Fatal("closed before a minute has passed")
	}
	if !w.e.callbacks.closeIdle(t.Context(), later.Add(listenerLinger)) || listens(t, p) {
		t.Fatal("open a minute after the last login ended")
	}
	again, err := w.e.Begin(t.Context(), w.a, w.srv, &LoginOptions{Listen: true})
	if err != nil {
		t.Fatal(err)
	}
	if again.RedirectURI != p.RedirectURI || !listens(t, again) {
		t.Errorf("the next login comes back to %s, want %s", again.RedirectURI, p.RedirectURI)
	}
}

// A login that another process began, and that comes back to this process's port, keeps
// the listener open; so does one that is being prepared.
func TestListenerStaysForOthers(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.srv.OAuth.RedirectURI = "http://127.0.0.1:" + freePortText(t) + "/back"
	p, err := w.e.Begin(t.Context(), w.a, w.srv, &LoginOptions{Listen: true})
	if err != nil {
		t.Fatal(err)
	}
	other := New(w.store, &Options{RoundTripper: w.net})
	defer func() { _ = other.Close() }()
	theirs, err := other.Begin(t.Context(), Account{Server: "srv", Label: "work"}, w.srv, &LoginOptions{Listen: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.e.Cancel(t.Context(), p.State); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Hour)
	if w.e.callbacks.closeIdle(t.Context(), later) || !listens(t, p) {
		t.Fatal("closed while another process waits for it")
	}
	if err := other.Cancel(t.Context(), theirs.State); err != nil {
		t.Fatal(err)
	}
	release := w.e.callbacks.server.Hold()
	if w.e.callbacks.closeIdle(t.Context(), later.Add(time.Hour)) || !listens(t, p) {
		t.Fatal("closed while a login is being prepared")
	}
	release()
	if !w.e.callbacks.closeIdle(t.Context(), later.Add(2*time.Hour)) || listens(t, p) {
		t.Error("open although nothing waits")
	}
}

// The engine closes it by itself, and Close afterwards ends nothing twice.
func TestListenerClosesByItself(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.e.callbacks.server.Linger, w.e.callbacks.look = time.Millisecond, time.Millisecond
	p, err := w.e.Begin(t.Context(), w.a, w.srv, &LoginOptions{Listen: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.e.Cancel(t.Context(), p.State); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for listens(t, p) {
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatal("still open")
		}
	}
	if resp, err := http.Get(p.RedirectURI); err == nil {
		_ = resp.Body.Close()
		t.Error("it still answers")
	}
}

func freePortText(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
