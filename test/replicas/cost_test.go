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

// burst sends n calls over connections that stay open, spread over the replicas, and
// returns the CPU time of the replicas per call.
func (w *world) burst(n, clients int, server string) time.Duration {
	w.t.Helper()
	before := w.cpu()
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			tr := &http.Transport{}
			defer tr.CloseIdleConnections()
			client := &http.Client{Transport: tr, Timeout: 30 * time.Second}
			for range n / clients {
				req, err := addRequest(w.t.Context(), "http://"+w.all[i%len(w.all)].addr+"/servers/"+server+"/mcp")
				if err != nil {
					w.t.Error(err)
					return
				}
				resp, err := client.Do(req)
				if err != nil {
					w.t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body) // a broken one shows in the next request
				_ = resp.Body.Close()
			}
		})
	}
	wg.Wait()
	return (w.cpu() - before) / time.Duration(n)
}

// Replicas add no cost: CPU per call and per refresh, measured in turn with one, two
// and three of them on one database, each with four clients, as medians. It means
// something only on a machine that does nothing else.
func TestReplicasAddNoCost(t *testing.T) {
	if !need.Proof() || runtime.GOOS != "linux" {
		return // minutes of measuring, by hand
	}
	const rounds, calls, renewals = 5, 2000, 20
	as := fake.NewAuth(&fake.AuthOptions{Grace: grace})
	_, stop, err := as.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	var worlds []*world
	for n := 1; n <= 3; n++ {
		w := newWorld(t, schema(t))
		name := w.protect(as)
		w.login(name, as)
		w.start(n)
		w.burst(1200, 12, name) // warm
		worlds = append(worlds, w)
	}
	perCall, perRefresh := make([][]time.Duration, 3), make([][]time.Duration, 3)
	for range rounds {
		for i, w := range worlds {
			perCall[i] = append(perCall[i], w.burst(calls*len(w.all), 4*len(w.all), "s0"))
		}
	}
	for range rounds {
		for i, w := range worlds {
			before := w.cpu()
			for range renewals {
				as.Expire()
				w.burst(6, 6, "s0")
			}
			perRefresh[i] = append(perRefresh[i], (w.cpu()-before)/renewals)
		}
	}
	for i := range worlds {
		slices.Sort(perCall[i])
		slices.Sort(perRefresh[i])
		t.Logf("%d replicas: CPU per call %v, per refresh with the six calls that want it %v", i+1, perCall[i][rounds/2], perRefresh[i][rounds/2])
	}
	one, three := perCall[0][rounds/2], perCall[2][rounds/2]
	if float64(three) > 1.10*float64(one) {
		t.Errorf("a call costs %v with three replicas and %v with one", three, one)
	}
}
