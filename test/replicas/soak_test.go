package replicas

import (
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/usher-mcp/usher/internal/fake"
)

// sample is what a process holds at a moment.
type sample struct {
	goroutines, files, bytes float64
}

// hold reads the metrics of a replica.
func (r *replica) hold() (sample, bool) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	resp, err := client.Get("http://" + r.addr + "/metrics")
	if err != nil {
		return sample{}, false
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return sample{}, false
	}
	value := func(name string) float64 {
		_, rest, _ := strings.Cut(string(text), "\n"+name+" ")
		line, _, _ := strings.Cut(rest, "\n")
		v, _ := strconv.ParseFloat(line, 64) // zero shows
		return v
	}
	return sample{
		goroutines: value("go_goroutines"), files: value("process_open_fds"), bytes: value("process_resident_memory_bytes"),
	}, true
}

// windows is into how many stretches a run is divided; each counts with its median,
// since a single sample is taken in the middle of some fault.
const windows = 12

// slope is how much a line through the medians of the windows rises from the first to
// the last, as a share of their mean.
func slope(samples []sample, of func(sample) float64) float64 {
	var n, sx, sy, sxx, sxy float64
	for i := range windows {
		part := samples[i*len(samples)/windows : (i+1)*len(samples)/windows]
		values := make([]float64, len(part))
		for k, s := range part {
			values[k] = of(s)
		}
		slices.Sort(values)
		x, y := float64(i), values[len(values)/2]
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	rise := (n*sxy - sx*sy) / (n*sxx - sx*sx)
	return rise * (windows - 1) / (sy / n)
}

// TestSoak lets a replica run under load for USHER_SOAK (such as 30m) with a fault
// every few seconds: another replica killed, the database away, tokens refused, the
// authorization server down. What the process holds must not grow. Without the
// variable it does nothing: it is run by hand.
func TestSoak(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("USHER_SOAK"))
	if err != nil {
		return
	}
	u, err := url.Parse(schema(t))
	if err != nil {
		t.Fatal(err)
	}
	db := newLine(t, u.Host)
	u.Host = db.addr
	as := fake.NewAuth(&fake.AuthOptions{Grace: grace, TTL: time.Minute, Ledger: fake.DiscardLedger()})
	_, stop, err := as.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	w := newWorld(t, u.String())
	names := []string{w.protect(as), w.protect(as), w.protect(as)}
	for _, name := range names {
		w.login(name, as)
	}
	w.start(3)
	a := w.call(6, names, 20*time.Millisecond)
	began := time.Now()
	var samples []sample
	faults := 0
	for time.Since(began) < length {
		<-time.After(4 * time.Second)
		faults++
		switch rand.IntN(4) {
		case 0:
			r := w.all[1+rand.IntN(2)] // the first one is watched
			r.kill()
			r.run()
			r.await()
		case 1:
			db.cut()
			<-time.After(time.Second)
			db.mend()
		case 2:
			as.Expire()
		default:
			as.Set("token-status=503;times=2")
		}
		if s, ok := w.all[0].hold(); ok && time.Since(began) > length/5 {
			samples = append(samples, s)
		}
	}
	a.stop()
	a.wg.Wait()
	t.Logf("%d calls, %d without an answer, %d with an error, %d faults, %d samples", a.calls, a.lost, len(a.wrong), faults, len(samples))
	for i, text := range a.wrong {
		if i < 5 {
			t.Log(text)
		}
	}
	if len(samples) < windows {
		t.Fatalf("only %d samples", len(samples))
	}
	last := samples[len(samples)-1]
	for name, of := range map[string]func(sample) float64{
		"goroutines": func(s sample) float64 { return s.goroutines }, "files": func(s sample) float64 { return s.files }, "bytes": func(s sample) float64 { return s.bytes },
	} {
		got := slope(samples, of)
		t.Logf("%s: %.0f at the end, slope %+.2f %%", name, of(last), 100*got)
		if got > 0.01 {
			t.Errorf("%s grow by %.1f %%", name, 100*got)
		}
	}
}
