package budget

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/vault"
)

// The counters of earlier windows go, also those of servers that nobody calls any more,
// and they are listed once a window and not once for every server.
func TestBudgetSweepsOldCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const windows, servers = 10, 20
		store := newCounting()
		limit := config.Budget{Calls: 100, Window: time.Minute}
		b := budgetsOf(store, config.Budgets{Total: config.Budget{Calls: 1000, Window: time.Hour}, PerServer: limit})
		spend(t, b, "once / 1m", 1)
		for range windows {
			for i := range servers {
				spend(t, b, fmt.Sprint("s", i), 1)
			}
			time.Sleep(time.Minute)
		}
		counts, err := store.Counts(t.Context(), vault.KindBudget, vault.Local)
		if err != nil || len(counts) != 1+2*servers {
			t.Errorf("%d counters are left, %v; want that of the hour and two of each server", len(counts), err)
		}
		if n := store.reads.Load(); n > windows+2 {
			t.Errorf("the counters were listed %d times in %d windows", n, windows)
		}
	})
}

func TestIndexOf(t *testing.T) {
	tests := []struct {
		name, span string
		want       int64
		ok         bool
	}{
		{"total / 1h / 7", "1h", 7, true},
		{"server a / b / 1h / 7", "1h", 7, true},
		{"server a / 11h / 7", "1h", 0, false},
		{"server a / 1h / 7", "1m", 0, false},
		{"server a / 1h / x", "1h", 0, false},
		{"1h / 7", "1h", 0, false},
		{"7", "1h", 0, false},
		{"", "1h", 0, false},
	}
	for _, tt := range tests {
		if got, ok := indexOf(tt.name, tt.span); got != tt.want || ok != tt.ok {
			t.Errorf("indexOf(%q, %q) = %d, %v", tt.name, tt.span, got, ok)
		}
	}
}

// The store is asked as seldom for many servers with few calls as for one with many.
func TestBudgetOfManyServers(t *testing.T) {
	const rate, seconds = 240, 60 // calls a second, of all servers together
	for _, servers := range []int{1, 20} {
		synctest.Test(t, func(t *testing.T) {
			store := newCounting()
			b := budgetsOf(store, config.Budgets{PerServer: config.Budget{Calls: 1 << 30, Window: time.Hour}})
			call := 0
			run := func(seconds int) {
				for range seconds * rate {
					spend(t, b, fmt.Sprint("s", call%servers), 1)
					call++
					time.Sleep(time.Second / rate)
				}
			}
			run(seconds) // in which they learn
			before := store.adds.Load()
			run(seconds)
			if n := store.adds.Load() - before; n > 2*seconds {
				t.Errorf("with %d servers the store was asked %d times in %d seconds", servers, n, seconds)
			}
		})
	}
}
