package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEnvironmentOverrides(t *testing.T) {
	w := newWorld(t)
	w.write(w.userFile(), `{"usher": {"maxConnected": 3, "bulk": {"concurrency": 2}}}`)
	w.env = map[string]string{
		"USHER_BULK_PREPARE_TIMEOUT": "90", "USHER_BULK_CONCURRENCY": "4", "USHER_STORE": "postgres://db",
		"USHER_GATEWAY_PUBLIC_URL": "https://g.example", "USHER_GATEWAY_ALLOWED_HOSTS": "a, b",
		"USHER_TELEMETRY_LISTEN": ":9464", "USHER_TELEMETRY_SAMPLE_RATIO": "0.5",
		"USHER_POLICY_DENY": "github/delete_*,x", "USHER_BUDGETS_PER_SERVER_CALLS": "7",
	}
	c, err := Load(LoadOptions{System: w.system(), Overrides: map[string]string{"bulk.concurrency": "5"}})
	if err != nil || c.Usher.Problem != nil {
		t.Fatal(err, c.Usher.Problem)
	}
	u := c.Usher
	got := []any{
		u.Bulk, u.Store, u.MaxConnected, u.Gateway.PublicURL, u.Gateway.AllowedHosts, u.Telemetry.Listen,
		u.Telemetry.SampleRatio, len(u.Policy.Deny), u.Budgets.PerServer.Calls,
	}
	want := []any{
		Bulk{5, 90 * time.Second}, "postgres://db", 3, "https://g.example", []string{"a", "b"}, ":9464", 0.5, 2, int64(7),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	w.env = map[string]string{"USHER_BULK_CONCURRENCY": "many"}
	if c := w.load(); c.Usher.Problem != nil || len(c.Usher.Mistakes) != 1 || !strings.Contains(c.Usher.Mistakes[0].Err.Error(), "USHER_BULK_CONCURRENCY") || c.Usher.Bulk.Concurrency != 2 {
		t.Errorf("bad variable: %v, %v, %d", c.Usher.Problem, c.Usher.Mistakes, c.Usher.Bulk.Concurrency)
	}
	if _, err := Load(LoadOptions{System: w.system(), Overrides: map[string]string{"bulk.concurency": "5"}}); err == nil ||
		!strings.Contains(err.Error(), `did you mean "bulk.concurrency"?`) {
		t.Errorf("bad flag: %v", err)
	}
}

func TestVariableNames(t *testing.T) {
	for path, want := range map[string]string{
		"bulk.prepareTimeout": "USHER_BULK_PREPARE_TIMEOUT", "store": "USHER_STORE", "gateway.publicUrl": "USHER_GATEWAY_PUBLIC_URL",
	} {
		if got := Variable(path); got != want {
			t.Errorf("Variable(%q) = %q, want %q", path, got, want)
		}
	}
}

func TestFindDirs(t *testing.T) {
	tests := []struct {
		name string
		goos string
		home string
		env  map[string]string
		want Dirs
	}{
		{"plain", "linux", "/h", nil, Dirs{"/h/.config/usher", "/h/.local/state/usher", "/h/.local/state/usher/run"}},
		{"mac", "darwin", "/h", nil, Dirs{"/h/.config/usher", "/h/.local/state/usher", "/h/.local/state/usher/run"}},
		{"xdg", "linux", "/h", map[string]string{"XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s"}, Dirs{"/c/usher", "/s/usher", "/s/usher/run"}},
		{"relative xdg is ignored", "linux", "/h", map[string]string{"XDG_CONFIG_HOME": "c"}, Dirs{"/h/.config/usher", "/h/.local/state/usher", "/h/.local/state/usher/run"}},
		{"one directory", "linux", "/h", map[string]string{"USHER_HOME": "/u", "XDG_CONFIG_HOME": "/c"}, Dirs{"/u", "/u", "/u/run"}},
		{"relative home", "linux", "/h", map[string]string{"USHER_HOME": "u"}, Dirs{"/w/u", "/w/u", "/w/u/run"}},
		{"windows", "windows", "/h", map[string]string{"APPDATA": "/r", "LOCALAPPDATA": "/l"}, Dirs{"/r/usher", "/l/usher", "/l/usher/run"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sys := System{Home: tt.home, Workdir: "/w", GOOS: tt.goos, LookupEnv: func(k string) (string, bool) { v, ok := tt.env[k]; return v, ok }}
			got, err := FindDirs(sys)
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestPermissions(t *testing.T) {
	tests := []struct {
		name        string
		mode        os.FileMode
		owner, self int
		want        string
	}{
		{"private", 0o600, 7, 7, ""},
		{"readable", 0o644, 7, 7, ""},
		{"root's", 0o644, 0, 7, ""},
		{"group", 0o664, 7, 7, "its group can write it (mode 0664) (chmod go-w f)"},
		{"world", 0o666, 7, 7, "anyone can write it (mode 0666) (chmod go-w f)"},
		{"another's", 0o600, 8, 7, "belongs to another user (uid 8), who could start programs as you (chown it, or copy it to a file of your own)"},
		{"another's, as root", 0o600, 8, 0, "belongs to another user (uid 8), who could start programs as you (chown it, or copy it to a file of your own)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if e := checkMode("f", tt.mode, tt.owner, tt.self, true); e != nil {
				got = strings.TrimPrefix(e.Error(), "f: ")
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestWritableFilesAreRefused(t *testing.T) {
	text := `{"mcpServers": {"a": {"command": "x"}}}`
	for _, mode := range []os.FileMode{0o666, 0o660, 0o602} {
		w := newWorld(t)
		user := w.write(w.userFile(), text)
		project := w.write(filepath.Join(w.repo, ".mcp.json"), strings.Replace(text, `"a"`, `"p"`, 1))
		for _, path := range []string{user, project} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
		c := w.load()
		if names(c.Servers) != "p" {
			t.Errorf("%o: servers %q, want the project's only", mode, names(c.Servers))
		}
		if c.Files[0].Err == nil || !strings.Contains(c.Files[0].Err.Error(), "chmod go-w "+user) {
			t.Errorf("%o: user file: %v", mode, c.Files[0].Err)
		}
		if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0].String(), "chmod go-w "+project) {
			t.Errorf("%o: warnings %v", mode, c.Warnings)
		}
		if _, err := Load(LoadOptions{System: w.system(), File: user}); err == nil {
			t.Errorf("%o: --config took it", mode)
		}
	}

	w := newWorld(t)
	user := w.write(w.userFile(), text)
	if err := os.Chmod(filepath.Dir(user), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(LoadOptions{System: w.system()}); err == nil || !strings.Contains(err.Error(), "chmod o-w") {
		t.Errorf("world-writable directory: %v", err)
	}
}
