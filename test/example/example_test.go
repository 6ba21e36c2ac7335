package example

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/test/need"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// built is the example program. It is built with copies of its go.mod and go.sum, and
// with the sums of this module, so that a changed requirement of this module changes no
// file here and nothing is downloaded.
func built(t *testing.T) string {
	t.Helper()
	root, err := need.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir, tmp := filepath.Join(root, "examples", "host"), t.TempDir()
	mod := read(t, filepath.Join(dir, "go.mod"))
	sums := slices.Concat(read(t, filepath.Join(dir, "go.sum")), read(t, filepath.Join(root, "go.sum")))
	write(t, filepath.Join(tmp, "go.mod"), mod)
	write(t, filepath.Join(tmp, "go.sum"), sums)
	program := filepath.Join(tmp, "host")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-mod=mod", "-modfile="+filepath.Join(tmp, "go.mod"), "-o", program, ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOPROXY=off", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// protected runs a server that requires a login at as, and returns its URL.
func protected(t *testing.T, name string, as *fake.AuthServer) string {
	t.Helper()
	srv := httptest.NewUnstartedServer(nil)
	resource := "http://" + srv.Listener.Addr().String() + "/mcp"
	m := fake.New(&fake.Options{Name: name})
	srv.Config.Handler = as.Protect(&fake.Protected{Resource: resource}, m.Handler())
	srv.Start()
	t.Cleanup(func() {
		m.Close()
		srv.Close()
	})
	return resource
}

// The example uses every part of the public API, and writes nothing to disk.
func TestExample(t *testing.T) {
	program, home := built(t), t.TempDir()
	open, stop, err := fake.New(&fake.Options{Name: "open"}).Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	as := fake.NewAuth(nil)
	_, stopAuth, err := as.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stopAuth)
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "OPEN_URL=" + open + "/mcp",
		fmt.Sprintf("LOGIN_URLS=notes=%s,mail=%s,wiki=%s", protected(t, "notes", as), protected(t, "mail", as), protected(t, "wiki", as)),
	}
	var out, errors bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errors
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, &out, &errors)
	}
	root, err := need.Root()
	if err != nil {
		t.Fatal(err)
	}
	want := string(read(t, filepath.Join(root, "test", "example", "testdata", "output.txt")))
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(out.String(), "\n")); diff != "" {
		t.Errorf("the example printed something else (-want +got):\n%s", diff)
	}
	if left, err := os.ReadDir(home); err != nil || len(left) > 0 {
		t.Errorf("written to disk: %v, %v", left, err)
	}
}
