package meter

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// of returns the only figure of a family.
func of(t *testing.T, r *Registry, name string) float64 {
	t.Helper()
	for _, f := range r.Gather() {
		if f.Name == name {
			return f.Samples[0].Value
		}
	}
	t.Fatalf("there is no %s", name)
	return 0
}

// What is said of the process is what others say of it.
func TestProcess(t *testing.T) {
	r := New()
	r.AddProcess()
	var spent syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &spent); err != nil {
		t.Fatal(err)
	}
	cpu := float64(spent.Utime.Nano()+spent.Stime.Nano()) / 1e9
	if got := of(t, r, "process_cpu_seconds_total"); got < cpu-.05 || got > cpu+5 {
		t.Errorf("%v seconds of work, the system says %v", got, cpu)
	}
	page := float64(os.Getpagesize())
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	size, rest, _ := strings.Cut(string(text), " ")
	resident, _, _ := strings.Cut(rest, " ")
	for name, pages := range map[string]string{"process_virtual_memory_bytes": size, "process_resident_memory_bytes": resident} {
		n, err := strconv.ParseFloat(pages, 64)
		if err != nil {
			t.Fatal(err)
		}
		want := n * page
		if got := of(t, r, name); got < want*.5 || got > want*2 {
			t.Errorf("%s is %v, the system says %v", name, got, want)
		}
	}
	if age := float64(time.Now().UnixNano())/1e9 - of(t, r, "process_start_time_seconds"); age < -1 || age > 600 {
		t.Errorf("started %v seconds ago", age)
	}
	before := of(t, r, "process_open_fds")
	for range 10 {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
	}
	if got := of(t, r, "process_open_fds"); got != before+10 {
		t.Errorf("%v files after 10 more than %v", got, before)
	}
	if got := of(t, r, "process_max_fds"); got < 10 {
		t.Errorf("at most %v files", got)
	}
}

func TestReadStat(t *testing.T) {
	const line = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 9 0 12345 1000000 25 18446744073709551615 1\n"
	u := unknownUsage()
	readStat(&u, []byte(line))
	want := unknownUsage()
	want.cpuSeconds, want.started, want.virtual, want.resident = 2, 123.45, 1e6, 25*float64(os.Getpagesize())
	if diff := cmp.Diff(want, u, cmp.AllowUnexported(usage{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, bad := range []string{"", "7 (a", "7 (a) S 1", "7 (a) S " + strings.Repeat("x ", 40)} {
		u := unknownUsage()
		readStat(&u, []byte(bad))
		if diff := cmp.Diff(unknownUsage(), u, cmp.AllowUnexported(usage{})); diff != "" {
			t.Errorf("%q (-want +got)\n%s", bad, diff)
		}
	}
}

func TestOctets(t *testing.T) {
	read, sent := octets("TcpExt: A InOctets\nTcpExt: 1 2\nIpExt: InNoRoutes InOctets OutOctets X\nIpExt: 0 300 400\n")
	if read != 300 || sent != 400 {
		t.Errorf("%v, %v", read, sent)
	}
	if read, sent := octets("IpExt: InOctets\n"); read != -1 || sent != -1 {
		t.Errorf("of nothing: %v, %v", read, sent)
	}
}

func TestRuntime(t *testing.T) {
	r := New()
	r.AddRuntime()
	runtime.GC()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	for name, want := range map[string]uint64{
		"go_memstats_alloc_bytes_total": mem.TotalAlloc, "go_memstats_mallocs_total": mem.Mallocs, "go_memstats_frees_total": mem.Frees,
		"go_memstats_heap_sys_bytes": mem.HeapSys, "go_memstats_sys_bytes": mem.Sys, "go_memstats_next_gc_bytes": mem.NextGC,
		"go_memstats_heap_inuse_bytes": mem.HeapInuse, "go_memstats_stack_sys_bytes": mem.StackSys, "go_memstats_mspan_sys_bytes": mem.MSpanSys,
		"go_memstats_mcache_sys_bytes": mem.MCacheSys, "go_memstats_gc_sys_bytes": mem.GCSys, "go_sched_gomaxprocs_threads": uint64(runtime.GOMAXPROCS(0)),
		"go_goroutines": uint64(runtime.NumGoroutine()), "go_memstats_last_gc_time_seconds": uint64(time.Now().Unix()),
	} {
		if got := of(t, r, name); got < float64(want)*.5 || got > float64(want)*1.5 {
			t.Errorf("%s is %v, the runtime says %v", name, got, want)
		}
	}
	for _, f := range r.Gather() {
		if f.Name == "go_gc_duration_seconds" && (f.Samples[0].Count == 0 || f.Samples[0].Sum <= 0 || len(f.Samples[0].Quantiles) != 5) {
			t.Errorf("collections: %+v", f.Samples[0])
		}
	}
}
