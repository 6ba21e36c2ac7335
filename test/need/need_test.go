package need

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFoundProgramsExist(t *testing.T) {
	for name, path := range map[string]string{
		"node":        Node(t),
		"everything":  NPM(t, "server-everything"),
		"filesystem":  NPM(t, "server-filesystem"),
		"memory":      NPM(t, "server-memory"),
		"conformance": Conformance(t),
		"fixture":     Fixture(t),
	} {
		if !filepath.IsAbs(path) {
			t.Errorf("%s: path %q is not absolute", name, path)
		}
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// outcome records how a test would have ended, without ending this one.
type outcome struct {
	testing.TB
	ended string
}

func (o *outcome) Helper()               {}
func (o *outcome) Fatal(...any)          { o.ended = "failed" }
func (o *outcome) Skipf(string, ...any)  { o.ended = "skipped" }
func (o *outcome) Fatalf(string, ...any) { o.ended = "failed" }

func TestMissingProgramIsNeverSkippedWhenStrict(t *testing.T) {
	missing := func() (string, error) { return "", fmt.Errorf("thing: %w", ErrMissing) }
	broken := func() (string, error) { return "", errors.New("disk on fire") }
	tests := []struct {
		name, ci, strict string
		find             func() (string, error)
		want             string
	}{
		{"plain go test", "", "", missing, "skipped"},
		{"CI", "true", "", missing, "failed"},
		{"make test", "", "1", missing, "failed"},
		{"another error is no reason to skip", "", "", broken, "failed"},
		{"found", "true", "1", func() (string, error) { return "/x", nil }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("CI", tt.ci)
			t.Setenv("USHER_TEST_STRICT", tt.strict)
			o := &outcome{}
			require(o, tt.find)
			if o.ended != tt.want {
				t.Errorf("ended %q, want %q", o.ended, tt.want)
			}
		})
	}
}

func TestRecentNode(t *testing.T) {
	for version, want := range map[string]bool{
		"v22.23.3\n": true, "v26.0.0": true, "v20.20.2\n": false, "v9.1.0": false, "": false, "nonsense": false,
	} {
		if got := recentNode(version); got != want {
			t.Errorf("recentNode(%q) = %v, want %v", version, got, want)
		}
	}
}

func TestBinOf(t *testing.T) {
	tests := []struct{ name, manifest, want string }{
		{"one string", `{"bin":"a.js"}`, "a.js"},
		{"one entry", `{"bin":{"x":"dist/i.js"}}`, "dist/i.js"},
		{"two entries", `{"bin":{"x":"a","y":"b"}}`, ""},
		{"none", `{}`, ""},
		{"not JSON", `{`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := binOf([]byte(tt.manifest))
			if got != tt.want || (err != nil) != (tt.want == "") {
				t.Errorf("binOf = %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}
