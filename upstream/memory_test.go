//go:build linux

package upstream_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/process"
	"github.com/usher-mcp/usher/upstream"
)

// TestHugeLineMemory wants an answer of 100 MB refused at the cost of less than
// 64 MiB, and the connection usable afterwards.
func TestHugeLineMemory(t *testing.T) {
	for _, kind := range []string{"stdio/modern", "http/modern"} {
		t.Run(kind, func(t *testing.T) {
			srv := childFake(t, kind)
			srv.MaxMessageBytes = 16 << 20
			c := dial(t, srv, &upstream.Options{Executable: testSelf(t)})
			debug.FreeOSMemory()
			before := peakMemory(t)
			ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
			defer cancel()
			_, err := c.Do(ctx, callTool("echo", `{}`))
			if outcome(err) != "toolarge" {
				t.Fatalf("a line of 100 MB: %v", err)
			}
			if extra := (peakMemory(t) - before) >> 20; extra >= 64 {
				t.Errorf("it cost %d MiB", extra)
			}
			if result, err := c.Do(ctx, callTool("echo", `{"k":1}`)); err != nil {
				t.Errorf("the next call: %s, %v", result, err)
			}
		})
	}
}

// peakMemory returns the greatest resident size since the last call and starts
// again.
func peakMemory(t *testing.T) int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kib int64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// childFake starts a fake in a process of its own, so that only our memory is
// measured. Its first call is answered with 100 MB.
func childFake(t *testing.T, kind string) config.Server {
	args := []string{"child-fake", "--versions", mcp.Latest, "--switch", "bigline=100;times=1"}
	if strings.HasPrefix(kind, "stdio") {
		return config.Server{Name: "fake", Transport: config.TransportStdio, Command: testSelf(t), Args: args}
	}
	child, err := process.Start(t.Context(), process.Options{Command: testSelf(t), Args: append(args, "--http", "127.0.0.1:0")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Stop() })
	url, err := bufio.NewReader(child.Stdout()).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return config.Server{Name: "fake", Transport: config.TransportHTTP, URL: strings.TrimSpace(url)}
}
