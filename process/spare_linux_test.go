package process

import (
	"os"
	"slices"
	"testing"
	"time"
)

// The first child runs below the shim that was started ahead, with the pipes of that;
// the next one has a shim of its own.
func TestSpare(t *testing.T) {
	spare := NewSpare(Self(), "label")
	t.Cleanup(spare.Close)
	ahead := spare.guard.shim.pid
	var parents []int
	for range 2 {
		opt := testOptions(mark(t), Self(), "farewell")
		opt.Spare = spare
		c := start(t, opt)
		ready(t, c)
		p, _ := lookup(c.Pid())
		parents = append(parents, p.ppid)
		if err := c.Stop(); err != nil || c.Err() != nil {
			t.Errorf("stopped with %v, ended with %v", err, c.Err())
		}
	}
	if parents[0] != ahead || parents[1] == ahead {
		t.Errorf("the shim started ahead is %d, the children ran below %v", ahead, parents)
	}
}

// A start that fails ends the shim that was started for it, like any other.
func TestSpareFails(t *testing.T) {
	alone(t)
	spare := NewSpare(Self(), "label")
	t.Cleanup(spare.Close)
	opt := testOptions(mark(t), Self(), "")
	opt.Command, opt.Spare = "/proc/self/mem", spare // there, but not to be run
	if _, err := Start(t.Context(), opt); err == nil {
		t.Fatal("no error")
	}
	spare.Close()
	if left := childrenOf(t, os.Getpid()); len(left) > 0 {
		t.Errorf("children left: %v", left)
	}
}

// What nobody took leaves nothing behind, whether it is closed or its host dies.
func TestSpareUnused(t *testing.T) {
	alone(t)
	NewSpare(Self(), "warm up").Close()
	before := descriptors(t)
	spare := NewSpare(Self(), "label")
	if left := childrenOf(t, os.Getpid()); !slices.Equal(left, []int{spare.guard.shim.pid}) {
		t.Errorf("children %v, want the shim", left)
	}
	spare.Close()
	spare.Close()
	orphan := NewSpare(Self(), "label")
	orphan.guard.link.Close() // as the system does when the host dies
	begin := time.Now()
	state, err := orphan.guard.shim.wait()
	if err != nil || state.ExitStatus() != shimFailed {
		t.Errorf("the shim of a dead host ended with %v, %v", state, err)
	}
	orphan.guard.shim.kill() // the number may be another's
	if _, err := orphan.guard.shim.wait(); err == nil {
		t.Error("waited for twice")
	}
	t.Logf("gone after %v", time.Since(begin))
	orphan.pipes.close()
	if after := descriptors(t); len(after) > len(before) {
		t.Errorf("descriptors before %v, after %v", before, after)
	}
	if left := childrenOf(t, os.Getpid()); len(left) > 0 {
		t.Errorf("children left: %v", left)
	}
}

// Where there is no shim, and where it cannot be started, there is nothing to take.
func TestNoSpare(t *testing.T) {
	for _, shim := range []string{"", "/nowhere/shim"} {
		spare := NewSpare(shim, "label")
		if p, g := spare.take(); p != nil || g != nil {
			t.Errorf("%q: something was started", shim)
		}
		spare.Close()
	}
}
