package budget

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/vault"
)

// counting is a store that counts writes to counters, and can be away.
type counting struct {
	vault.Store
	adds, reads atomic.Int64
	away        atomic.Bool
}

func (c *counting) Counts(ctx context.Context, kind, principal string) ([]vault.Count, error) {
	c.reads.Add(1)
	return c.Store.Counts(ctx, kind, principal)
}

func (c *counting) Add(ctx context.Context, k vault.Key, delta int64) (int64, error) {
	if c.away.Load() {
		return 0, vault.ErrUnavailable
	}
	c.adds.Add(1)
	return c.Store.Add(ctx, k, delta)
}

func (c *counting) AddAll(ctx context.Context, deltas ...vault.Count) ([]int64, error) {
	if c.away.Load() {
		return nil, vault.ErrUnavailable
	}
	c.adds.Add(1)
	return c.Store.AddAll(ctx, deltas...)
}

func newCounting() *counting { return &counting{Store: vault.NewMemory()} }

func budgetsOf(store vault.Counters, limits config.Budgets) *Budgets {
	b := New(store, slog.New(slog.DiscardHandler))
	b.Configure(limits)
	return b
}

func spend(t *testing.T, b *Budgets, server string, n int) (ok int, last error) {
	t.Helper()
	for range n {
		if err := b.charge(t.Context(), b.Meter(server)); err != nil {
			last = err
		} else {
			ok++
		}
	}
	return ok, last
}

func TestBudgetOfARun(t *testing.T) {
	b := budgetsOf(nil, config.Budgets{Total: config.Budget{Run: 5}, Servers: map[string]config.Budget{"small": {Run: 2}}})
	if ok, err := spend(t, b, "small", 4); ok != 2 || !errors.Is(err, ErrSpent) {
		t.Errorf("small: %d calls, %v", ok, err)
	}
	ok, err := spend(t, b, "big", 10)
	var be *Error
	if ok != 3 || !errors.As(err, &be) || be.Server != "" || be.Limit != 5 || !be.Refill.IsZero() {
		t.Errorf("big: %d calls, %v; want the 3 that small left of 5", ok, err)
	}
	if want := "the budget of 5 calls per run is exhausted (all servers together); it resets when usher restarts"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
}

func TestBudgetOfAWindow(t *testing.T) {
	for _, store := range []vault.Counters{nil, vault.NewMemory()} {
		t.Run(fmt.Sprintf("%T", store), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := budgetsOf(store, config.Budgets{PerServer: config.Budget{Calls: 10, Window: time.Hour}})
				time.Sleep(20 * time.Minute) // the bubble's clock starts at a full hour
				if ok, _ := spend(t, b, "s", 15); ok != 10 {
					t.Errorf("%d calls in the first hour, want 10", ok)
				}
				_, err := spend(t, b, "s", 1)
				var be *Error
				if !errors.As(err, &be) || be.Server != "s" || time.Until(be.Refill) != 40*time.Minute {
					t.Fatalf("%v, want it to refill in 40m", err)
				}
				want := fmt.Sprintf("the budget of 10 calls per 1h is exhausted (s); it resets in 40m, at %s", be.Refill.Format(time.TimeOnly))
				if err.Error() != want {
					t.Errorf("%q, want %q", err, want)
				}
				if ok, _ := spend(t, b, "other", 15); ok != 10 {
					t.Errorf("another server got %d calls, want 10", ok)
				}
				time.Sleep(40*time.Minute - 1)
				if ok, _ := spend(t, b, "s", 1); ok != 0 {
					t.Error("it refilled too early")
				}
				time.Sleep(time.Nanosecond)
				if ok, _ := spend(t, b, "s", 15); ok != 10 {
					t.Errorf("%d calls in the second hour, want 10", ok)
				}
			})
		})
	}
}

// Two processes share a budget to its last call, and write far less often than
// they call.
func TestBudgetIsSharedBetweenProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newCounting()
		limits := config.Budgets{Total: config.Budget{Calls: 1000, Window: time.Hour}}
		a, b := budgetsOf(store, limits), budgetsOf(store, limits)
		used := 0
		for range 1000 {
			for _, p := range []*Budgets{a, b} {
				ok, _ := spend(t, p, "s", 1)
				used += ok
			}
		}
		if used != 1000 {
			t.Errorf("%d calls, want 1000", used)
		}
		if n := store.adds.Load(); n > 120 {
			t.Errorf("%d writes for 2000 calls", n)
		}
		before := store.adds.Load()
		spend(t, a, "s", 500) // all refused
		if n := store.adds.Load() - before; n > 4 {
			t.Errorf("%d writes for 500 refusals", n)
		}
	})
}

// TestBudgetOfABusyProcess: who uses reservations up quickly gets larger ones, so
// that the store is not asked all the time; after a pause they are small again.
func TestBudgetOfABusyProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newCounting()
		b := budgetsOf(store, config.Budgets{Total: config.Budget{Calls: 1 << 30, Window: time.Hour}})
		if ok, err := spend(t, b, "s", 1<<20); ok != 1<<20 {
			t.Fatalf("%d calls, %v", ok, err)
		}
		if n := store.adds.Load(); n > 8+1<<20/maxChunk {
			t.Errorf("the store was asked %d times", n)
		}
		w := b.total.window.Load()
		time.Sleep(pause * w.brief)
		w.left.Store(0)
		if _, err := spend(t, b, "s", 1); err != nil || w.chunk != firstChunk {
			t.Errorf("%d are reserved after a pause, %v", w.chunk, err)
		}
	})
}

// TestBudgetLearnsQuickly: a server with some calls a second soon has what lasts for a
// minute, since each of a thousand asks the store by itself.
func TestBudgetLearnsQuickly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newCounting()
		b := budgetsOf(store, config.Budgets{PerServer: config.Budget{Calls: 1 << 30, Window: time.Hour}})
		for range 1200 {
			if ok, err := spend(t, b, "s", 1); ok != 1 {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := store.adds.Load(); n > 4 {
			t.Errorf("the store was asked %d times in two minutes", n)
		}
	})
}

// TestBudgetOfOneCall: a process that makes one call writes once for both budgets and
// has nothing to give back.
func TestBudgetOfOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newCounting()
		limit := config.Budget{Calls: 1000, Window: time.Hour}
		b := budgetsOf(store, config.Budgets{Total: limit, PerServer: limit})
		if ok, err := spend(t, b, "s", 1); ok != 1 {
			t.Fatal(err)
		}
		b.Close(t.Context())
		if n := store.adds.Load(); n != 1 {
			t.Errorf("the store was written %d times, want once", n)
		}
		counts, err := store.Counts(t.Context(), vault.KindBudget, vault.Local)
		if err != nil || len(counts) != 2 || counts[0].Value != 1 || counts[1].Value != 1 {
			t.Errorf("counted: %v, %v", counts, err)
		}
	})
}

// Two budgets that are asked for together keep to their own limits, with a store that
// is away for a while too.
func TestBudgetsTogether(t *testing.T) {
	limits := config.Budgets{Total: config.Budget{Calls: 5, Window: time.Hour}, PerServer: config.Budget{Calls: 2, Window: time.Hour}}
	for name, away := range map[string]bool{"there": false, "away at first": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newCounting()
				store.away.Store(away)
				b := budgetsOf(store, limits)
				if ok, _ := spend(t, b, "a", 1); ok != 1 {
					t.Fatal("refused")
				}
				store.away.Store(false)
				for server, want := range map[string]int{"a": 1, "b": 2} {
					if ok, err := spend(t, b, server, 3); ok != want || !errors.Is(err, ErrSpent) {
						t.Errorf("%s: %d calls, %v; want %d", server, ok, err, want)
					}
				}
				b.Close(t.Context())
				if ok, err := spend(t, budgetsOf(store, limits), "c", 2); ok != 1 || !errors.Is(err, ErrSpent) {
					t.Errorf("the next process: %d calls, %v; want the one that is left of all", ok, err)
				}
			})
		})
	}
}

func TestBudgetGivesBackWhatIsUnused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newCounting()
		limits := config.Budgets{Total: config.Budget{Calls: 160, Window: time.Hour}}
		a := budgetsOf(store, limits)
		if ok, _ := spend(t, a, "s", 3); ok != 3 {
			t.Fatal(ok)
		}
		a.Close(t.Context())
		b := budgetsOf(store, limits)
		if ok, _ := spend(t, b, "s", 200); ok != 157 {
			t.Errorf("the next process got %d calls, want 157", ok)
		}
	})
}

// What one process gives back reaches another that has been refused meanwhile.
func TestBudgetGivenBackIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newCounting()
		limits := config.Budgets{Total: config.Budget{Calls: 32, Window: time.Hour}}
		a, b := budgetsOf(store, limits), budgetsOf(store, limits)
		spend(t, a, "s", 2) // reserves one, then two
		if ok, _ := spend(t, b, "s", 32); ok != 29 {
			t.Fatalf("%d calls, want 29", ok)
		}
		for range 10 {
			time.Sleep(time.Second)
			spend(t, b, "s", 1)
		}
		a.Close(t.Context())
		time.Sleep(time.Second)
		if ok, _ := spend(t, b, "s", 5); ok != 1 {
			t.Errorf("%d calls, want the one that was given back", ok)
		}
	})
}

func TestBudgetWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newCounting()
		limits := config.Budgets{Total: config.Budget{Calls: 100, Window: time.Hour}}
		a := budgetsOf(store, limits)
		store.away.Store(true)
		if ok, _ := spend(t, a, "s", 50); ok != 50 {
			t.Errorf("%d of 50 calls went on", ok)
		}
		store.away.Store(false)
		if ok, _ := spend(t, a, "s", 100); ok != 50 {
			t.Errorf("%d more calls, want 50", ok)
		}
		b := budgetsOf(store, limits)
		if ok, _ := spend(t, b, "s", 100); ok != 0 {
			t.Errorf("another process got %d calls on top", ok)
		}
	})
}

func TestBudgetLimitsCanChange(t *testing.T) {
	b := budgetsOf(nil, config.Budgets{Total: config.Budget{Run: 2}, PerServer: config.Budget{Calls: 1}})
	spend(t, b, "s", 5)
	b.Configure(config.Budgets{Total: config.Budget{Run: 3}})
	if ok, _ := spend(t, b, "s", 5); ok != 2 {
		t.Errorf("%d calls after the change, want the 2 that are left of 3", ok)
	}
	b.Configure(config.Budgets{})
	if ok, _ := spend(t, b, "s", 50); ok != 50 {
		t.Errorf("%d of 50 calls without a limit", ok)
	}
}

func TestBudgetUnderConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newCounting()
		b := budgetsOf(store, config.Budgets{
			Total: config.Budget{Calls: 500, Window: 24 * time.Hour}, PerServer: config.Budget{Run: 400},
		})
		var ok atomic.Int64
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for i := range 100 {
					if b.charge(context.Background(), b.Meter(fmt.Sprint("s", i%2))) == nil {
						ok.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if n := ok.Load(); n != 500 {
			t.Errorf("%d calls, want 500", n)
		}
	})
}

func TestBudgetStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budgetsOf(vault.NewMemory(), config.Budgets{Total: config.Budget{Run: 50}, PerServer: config.Budget{Calls: 32, Window: time.Hour}})
		spend(t, b, "s", 7)
		got := b.Status()
		if len(got) != 2 || got[0].Run != 7 || got[0].RunLimit != 50 || got[1].Server != "s" || got[1].WindowUsed != 7 || got[1].WindowLimit != 32 {
			t.Errorf("%+v", got)
		}
		if time.Until(got[1].Refill) != time.Hour {
			t.Errorf("refills in %v", time.Until(got[1].Refill))
		}
	})
}
