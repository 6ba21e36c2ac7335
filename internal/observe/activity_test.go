package observe

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/policy"
)

func TestActivity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a Activity
		k := host.Key{Server: "math", Lane: "agent-1"}
		call := func(tool, outcome string, took time.Duration, err error) {
			a.Add(policy.Finished{Key: k, Tool: tool, Outcome: outcome, Began: time.Now(), Took: took, Err: err})
		}
		call("early", policy.OutcomeOK, 0, nil)
		if a.Recent() != nil && len(a.Recent()) != 0 || a.LastMinute(k, time.Now()) != nil || a.LastCall(k).IsZero() {
			t.Error("more than the last call is remembered although nobody watches")
		}
		a.Watch()
		for i := range recentCalls + 3 {
			call(fmt.Sprint(i), policy.OutcomeOK, time.Millisecond, nil)
		}
		time.Sleep(10 * time.Second)
		call("slow", policy.OutcomeError, 200*time.Millisecond, errors.New("no"))
		last := a.LastCall(k)
		time.Sleep(time.Second)
		call("denied", policy.OutcomeDenied, 0, policy.ErrDenied)
		if !a.LastCall(host.Key{Principal: host.Local, Server: "math"}).Equal(last) {
			t.Error("a call that was refused counts as one, or a lane as another account")
		}
		got := a.Recent()
		if len(got) != recentCalls || got[0].Tool != "denied" || got[1].Tool != "slow" || got[1].Problem != "no" || got[2].Tool != fmt.Sprint(recentCalls+2) {
			t.Fatalf("%d calls, newest %+v", len(got), got[:3])
		}
		for i := 1; i < len(got); i++ {
			if got[i].Number != got[i-1].Number-1 {
				t.Fatalf("call %d is out of order", i)
			}
		}
		minute := a.LastMinute(k, time.Now())
		if len(minute) != recentWindow {
			t.Fatalf("%d seconds", len(minute))
		}
		slow := minute[recentWindow-2]
		if slow.Calls != 1 || slow.Failed != 1 || slow.Worst != 200*time.Millisecond || minute[recentWindow-12].Calls != recentCalls+3 {
			t.Errorf("seconds %+v", minute)
		}
		time.Sleep(time.Minute)
		for _, s := range a.LastMinute(k, time.Now()) {
			if s.Calls != 0 {
				t.Errorf("an old second is shown: %+v", s)
			}
		}
	})
}

// Taking a call in must not cost anything that one would notice.
func BenchmarkActivity(b *testing.B) {
	f := policy.Finished{Key: host.Key{Server: "math"}, Tool: "add", Outcome: policy.OutcomeOK, Began: time.Now(), Took: time.Millisecond}
	for _, watched := range []bool{false, true} {
		b.Run(fmt.Sprintf("watched=%v", watched), func(b *testing.B) {
			var a Activity
			a.watched.Store(watched)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					a.Add(f)
				}
			})
		})
	}
}
