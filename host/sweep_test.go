package host

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/limit"
)

func sweepable(t *testing.T, forgotten *[]Key) *Host {
	t.Helper()
	h := New(&Options{OnForget: func(k Key) { *forgotten = append(*forgotten, k) }})
	if err := h.Spawn(t.Context(), config.Server{Name: "s", Transport: config.TransportHTTP, URL: "http://127.0.0.1:1"}, &SpawnOptions{Lazy: true}); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestIdleUnitsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var forgotten []Key
		h := sweepable(t, &forgotten)
		defer h.Close()
		h.Cached(Key{Server: "s"})
		h.Cached(Key{Server: "s", Account: "work"})
		h.Cached(Key{Server: "s", Principal: "ann"})
		time.Sleep(limit.UnitIdle - time.Second)
		h.Cached(Key{Server: "s", Principal: "bob"})
		if len(forgotten) != 0 {
			t.Errorf("%v are forgotten too early", forgotten)
		}
		time.Sleep(limit.UnitSweep)
		h.Cached(Key{Server: "s", Principal: "carl"})
		if len(forgotten) != 2 || len(h.StatusOf("ann")) != 1 || len(h.units()) != 3 {
			t.Errorf("%v are forgotten, %d are left", forgotten, len(h.units()))
		}
	})
}

func TestUnitsAreBounded(t *testing.T) {
	var forgotten []Key
	h := sweepable(t, &forgotten)
	defer h.Close()
	for i := range limit.UnitsPerServer + 100 {
		h.Cached(Key{Server: "s", Principal: fmt.Sprint("p", i)})
	}
	if n := len(h.units()); n > limit.UnitsPerServer || len(forgotten) == 0 {
		t.Errorf("%d are kept, %d forgotten", n, len(forgotten))
	}
	for _, u := range h.units() {
		u.mu.Lock()
		u.waiters++ // somebody waits for each of them
		u.mu.Unlock()
	}
	var last error
	for i := range limit.UnitsPerServer {
		if _, last = h.unit(Key{Server: "s", Principal: fmt.Sprint("q", i)}); last != nil {
			break
		}
		u, _ := h.unit(Key{Server: "s", Principal: fmt.Sprint("q", i)})
		u.mu.Lock()
		u.waiters++
		u.mu.Unlock()
	}
	if !errors.Is(last, ErrBusy) || len(h.units()) > limit.UnitsPerServer {
		t.Errorf("with %d in use: %v", len(h.units()), last)
	}
}
