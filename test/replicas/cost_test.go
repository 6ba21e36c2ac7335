package replicas

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/test/need"
)

// cpu is the time that the replicas have used so far.
func (w *world) cpu() time.Duration {
	var ticks int64
	for _, r := range w.all {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.cmd.Process.Pid))
		if err != nil {
			w.t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		for _, f := range fields[11:13] { // utime, stime
			n, err := strconv.ParseInt(f, 10, 64)
			if err != nil {
				w.t.Fatal(err)
			}
			ticks += n
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// burst sends n calls over clients that keep their connections open.
func (r *replica) burst(n, clients int, server string) {
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			tr := &http.Transport{}
			defer tr.CloseIdleConnections()
			client := &http.Client{Transport: tr, Timeout: 30 * time.Second}
			for range n / clients {
				req, err := addRequest(r.w.t.Context(), "http://"+r.addr+"/servers/"+server+"/mcp")
				if err != nil {
					r.w.t.Error(err)
					return
				}
				resp, err := client.Do(req)
				if err != nil {
					r.w.t.Error(err)
					return
				}
				text, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if err != nil || !strings.Contains(string(text), `"text":"3"`) {
					r.w.t.Errorf("HTTP %d %.200s %v", resp.StatusCode, text, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// spend is the CPU time that the replicas use together for each of n things.
func (w *world) spend(n int, do func()) time.Duration {
	before := w.cpu()
	do()
	return (w.cpu() - before) / time.Duration(n)
}

// callsInTurn is the cost of a call when one replica is busy at a time and the others
// stand by, so that they do not compete for the processors of this machine: what a
// call costs because there are several.
func (w *world) callsInTurn(n int) time.Duration {
	return w.spend(n, func() {
		for _, r := range w.all {
			r.burst(n/len(w.all), 4, "s0")
		}
	})
}

// callsAtOnce is the same with all of them busy.
func (w *world) callsAtOnce(n int) time.Duration {
	return w.spend(n, func() {
		var wg sync.WaitGroup
		for _, r := range w.all {
			wg.Go(func() { r.burst(n/len(w.all), 4, "s0") })
		}
		wg.Wait()
	})
}

// renewals is the cost of a renewal, with the call that asks for it. Each replica uses
// a login of its own; the others hear of it.
func (w *world) renewals(as *fake.AuthServer, n int) time.Duration {
	return w.spend(n, func() {
		for i := range n {
			as.Expire()
			w.all[i%len(w.all)].burst(1, 1, fmt.Sprint("s", i%len(w.all)))
		}
	})
}

// herd is the cost of a renewal that six calls ask for at once, spread over all.
func (w *world) herd(as *fake.AuthServer, n int) time.Duration {
	return w.spend(n, func() {
		for range n {
			as.Expire()
			var wg sync.WaitGroup
			for _, r := range w.all {
				wg.Go(func() { r.burst(6/len(w.all), 6/len(w.all), "s0") })
			}
			wg.Wait()
		}
	})
}

// Replicas add no cost: CPU per call and per renewal with one, two and three of them
// on one database, measured in turn and as medians of several rounds. It means
// something only on a machine that does nothing else.
func TestReplicasAddNoCost(t *testing.T) {
	if !need.Proof() || runtime.GOOS != "linux" {
		return // minutes of measuring, by hand
	}
	const rounds, calls, renewals = 9, 4200, 120
	as := fake.NewAuth(&fake.AuthOptions{Grace: grace})
	_, stop, err := as.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	var worlds []*world
	for n := 1; n <= 3; n++ {
		w := newWorld(t, schema(t))
		for range n {
			w.login(w.protect(as), as)
		}
		w.start(n)
		w.callsInTurn(1500 * n) // warm
		worlds = append(worlds, w)
	}
	for _, m := range []struct {
		name string
		what string
		bar  float64 // 0: told, not judged
		of   func(*world) time.Duration
	}{
		{"call", "call, one replica busy at a time", 1.10, func(w *world) time.Duration { return w.callsInTurn(calls) }},
		{"renewal", "renewal, with its call", 1.10, func(w *world) time.Duration { return w.renewals(as, renewals) }},
		{"busy", "call, all busy on this machine's processors", 0, func(w *world) time.Duration { return w.callsAtOnce(calls) }},
		{"herd", "renewal that six calls on all replicas ask for", 0, func(w *world) time.Duration { return w.herd(as, renewals/4) }},
	} {
		t.Run(m.name, func(t *testing.T) {
			spent := make([][]time.Duration, len(worlds))
			for range rounds {
				for i, w := range worlds {
					spent[i] = append(spent[i], m.of(w))
				}
			}
			for i := range spent {
				slices.Sort(spent[i])
				median, one := spent[i][rounds/2], spent[0][rounds/2]
				t.Logf("%d replicas: CPU per %s: %v (from %v to %v)", i+1, m.what, median, spent[i][0], spent[i][rounds-1])
				if m.bar > 0 && float64(median) > m.bar*float64(one) {
					t.Errorf("a %s costs %v with %d replicas and %v with one", m.what, median, i+1, one)
				}
			}
		})
	}
	const idle = 10 * time.Second
	spent := time.Duration(0)
	for _, w := range worlds {
		spent -= w.cpu()
	}
	<-time.After(idle)
	for _, w := range worlds {
		spent += w.cpu()
	}
	t.Logf("CPU per minute of idling: %v", spent/6*(time.Minute/idle)) // six replicas
}
