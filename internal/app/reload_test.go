package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/watch"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/vault"
)

// filed is a host whose configuration is a file.
type filed struct {
	*App
	t    *testing.T
	path string
}

func openFiled(t *testing.T, text string) *filed {
	t.Helper()
	home := t.TempDir()
	f := &filed{t: t, path: filepath.Join(home, "mcp.json")}
	f.write(text)
	h, err := Open(t.Context(), &Options{
		Store: vault.NewMemory(),
		Load: config.LoadOptions{System: config.System{Home: home, Workdir: home, LookupEnv: func(name string) (string, bool) {
			return home, name == "USHER_HOME"
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	f.App = h
	return f
}

func (f *filed) write(text string) {
	f.t.Helper()
	if err := os.WriteFile(f.path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *filed) reread() ConfigChange {
	f.t.Helper()
	got, err := f.ReloadConfig(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	return got
}

func (f *filed) call(server string) error {
	_, err := f.Call(f.t.Context(), server, "echo", []byte(`{"text":"x"}`), nil)
	return err
}

// listening starts a fake server and returns its address.
func listening(t *testing.T, name string) (*fake.Server, string) {
	t.Helper()
	s := fake.New(&fake.Options{Name: name})
	url, stop, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return s, url + "/mcp"
}

func TestReread(t *testing.T) {
	kept, keptURL := listening(t, "kept")
	_, firstURL := listening(t, "first")
	second, secondURL := listening(t, "second")
	entry := `"kept": {"url": %q}, "moved": {"url": %q}`
	f := openFiled(t, fmt.Sprintf(`{"mcpServers": {`+entry+`, "gone": {"url": %q}}}`, keptURL, firstURL, firstURL))
	spawned := config.Server{Name: "spawned", Transport: config.TransportHTTP, URL: firstURL}
	if err := f.Servers().Spawn(t.Context(), spawned, nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kept", "moved", "gone", "spawned"} {
		if err := f.call(name); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if got := f.reread(); len(got.Changed)+len(got.Notes) > 0 {
		t.Errorf("nothing was changed: %+v", got)
	}
	dials := kept.Ledger().Count("server/discover")

	f.write(fmt.Sprintf(`{"mcpServers": {`+entry+`, "new": {"url": %q}}, "usher": {"policy": {"deny": ["new/*"]}}}`, keptURL, secondURL, secondURL))
	if diff := cmp.Diff(ConfigChange{Changed: []string{"gone", "moved", "new"}}, f.reread()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, want := range map[string]error{"kept": nil, "moved": nil, "spawned": nil, "gone": host.ErrUnknownServer, "new": policy.ErrDenied} {
		if err := f.call(name); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	if n := kept.Ledger().Count("server/discover"); n != dials {
		t.Errorf("a server that did not change was connected %d times more", n-dials)
	}
	if second.Ledger().Count("tools/call") != 1 {
		t.Error("the call did not go to the new address")
	}
}

func TestRereadKeepsWhatIsBroken(t *testing.T) {
	_, url := listening(t, "a")
	good := fmt.Sprintf(`{"mcpServers": {"a": {"url": %q}}}`, url)
	f := openFiled(t, good)
	tests := []struct{ name, text, want string }{
		{"no JSON", `{"mcpServers": {`, "stays as it was"},
		{"rules that make no sense", `{"mcpServers": {}, "usher": {"policy": {"deny": ["a/b/c"]}}}`, "stays as it was"},
	}
	for _, tt := range tests {
		f.write(tt.text)
		if _, err := f.ReloadConfig(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if err := f.call("a"); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	f.write(fmt.Sprintf(`{"mcpServers": {"a": {"url": 7}, "b": {"url": %q}}, "usher": {"gateway": {"http": "127.0.0.1:1"}}}`, url))
	got := f.reread()
	if len(got.Notes) != 2 || !strings.Contains(got.Notes[0], "a stays as it was") || !strings.Contains(got.Notes[1], "next start") {
		t.Errorf("%q", got.Notes)
	}
	for _, name := range []string{"a", "b"} {
		if err := f.call(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.Remove(f.path); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, f.reread().Changed); diff != "" {
		t.Errorf("without a file (-want +got):\n%s", diff)
	}
}

// A configuration that a program has made is not replaced by the user's files.
func TestRereadNeedsFiles(t *testing.T) {
	h := opened(t, &config.Config{}, "a")
	if _, err := h.ReloadConfig(t.Context()); !errors.Is(err, errNoFiles) {
		t.Error(err)
	}
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := openFiled(t, `{"mcpServers": {}}`)
		ctx, stop := context.WithCancel(t.Context())
		var heard []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			f.WatchConfig(ctx, func(r ConfigChange, err error) {
				heard = append(heard, strings.Join(r.Changed, " ")+fmt.Sprint(err != nil))
			})
		}()
		after := func(text string) {
			synctest.Wait()
			if text != "" {
				f.write(text)
			}
			time.Sleep(watch.Every + watch.Quiet + time.Millisecond)
			synctest.Wait()
		}
		after("")
		after(`{"mcpServers": {"a": {"command": "true"}}}`)
		after("")
		after(`{"mcpServers": {`)
		after(`{"mcpServers": {"b": {"command": "true"}}}`)
		if err := os.Remove(f.path); err != nil {
			t.Fatal(err)
		}
		after("")
		stop()
		<-done
		if diff := cmp.Diff([]string{"afalse", "true", "a bfalse", "bfalse"}, heard); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestProfilesSelectByTag: a profile has the servers with its tags, also those that get
// them while the host runs.
func TestProfilesSelectByTag(t *testing.T) {
	const text = `{"mcpServers": {
		"a": {"command": "x", "tags": ["work"]}, "b": {"command": "x", "tags": [%s]}, "c": {"command": "x"}
	}, "usher": {"gateway": {"profiles": {"office": {"tags": ["work"]}}}}}`
	f := openFiled(t, fmt.Sprintf(text, ""))
	if diff := cmp.Diff([]string{"a"}, profiles(f.Config())["office"].Servers); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	f.write(fmt.Sprintf(text, `"work"`))
	f.reread()
	if diff := cmp.Diff([]string{"a", "b"}, profiles(f.Config())["office"].Servers); diff != "" {
		t.Errorf("after the reread (-want +got):\n%s", diff)
	}
}

// TestRereadWithAMistake: a wrong setting is told, and the rest of the file is applied.
func TestRereadWithAMistake(t *testing.T) {
	f := openFiled(t, `{"mcpServers": {}}`)
	f.write(`{"mcpServers": {"a": {"command": "x"}}, "usher": {"bulk": {"concurrency": "x"}}}`)
	got := f.reread()
	if len(got.Changed) != 1 || len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "mcp.json:1:") || !strings.Contains(got.Notes[0], "bulk.concurrency must be a number") {
		t.Errorf("%+v", got)
	}
}
