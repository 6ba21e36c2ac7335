package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/usher-mcp/usher/internal/fake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seeded is a secret of these tests alone: a sweep over a run that they are part of
// does not take it for a leak. It is in two parts so that this file holds none, should
// somebody check it out meanwhile.
const seeded = "seed-" + "ABCDEFGH"

func findSeeded(text []byte) [][]byte {
	return regexp.MustCompile(`\bseed-[A-H]{8}\b`).FindAll(text, -1)
}

// A leak is found wherever it is put, and nothing is found where there is none.
func TestLeaksAreFound(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	// Put together by the script, so that its own arguments hold neither.
	const made = "S=seed-ABCD; S=${S}EFGH; V=0123456789abcdef; "
	// A process stays until it was looked at, or for half a minute.
	found := filepath.Join(dir, "found")
	stay := "STAY='for i in $(seq 600); do [ -e " + found + " ] && break; sleep 0.05; done'; "
	for name, tt := range map[string]struct {
		script string
		want   string // of what is told; "" for no leak
	}{
		"none":                 {`echo all is well`, ""},
		"the command":          {`echo so $S it is`, "lines of output: the command holds seed-…"},
		"a test's output":      {`printf '{"Action":"output","Package":"p","Test":"TestX","Output":"got %s"}\n' $S`, "lines of output: p.TestX holds seed-…"},
		"arguments":            {`sh -c "$STAY # $S"; :`, "arguments of processes: sh holds seed-…"},
		"environment":          {`API_KEY=$S sh -c "$STAY"; :`, "LEAK in environments of processes: s"}, // sh or sleep, whichever is seen first
		"a file":               {`echo $S > ` + dir + `/log`, "files: " + dir + "/log holds seed-…"},
		"a file soon gone":     {`echo $S > ` + dir + `/brief; rm ` + dir + `/brief`, "files: " + dir + "/brief holds seed-…"},
		"a file on purpose":    {`mkdir -p ` + dir + `/` + exempt + `; echo $S > ` + dir + `/` + exempt + `/book`, ""},
		"a verifier":           {`V=${V}${V}01234567890; echo $V > "$` + fake.VerifierBook + `/1"; echo "verifier=$V"`, "lines of output: the command holds a verifier"},
		"a verifier, unspoken": {`V=${V}${V}01234567890; echo $V > "$` + fake.VerifierBook + `/1"; echo hello`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(name, "a file") && !canWatch(t, dir) {
				t.Log("files cannot be watched here: the sweep says so and goes on")
				return
			}
			if err := os.RemoveAll(found); err != nil {
				t.Fatal(err)
			}
			find := func(text []byte) [][]byte {
				all := findSeeded(text)
				if len(all) > 0 {
					_ = os.WriteFile(found, nil, 0o600) // or it takes longer
				}
				return all
			}
			var out, said bytes.Buffer
			code, err := run(t.Context(), find, &out, &said, []string{"sh", "-c", made + stay + tt.script})
			if err != nil {
				t.Fatal(err)
			}
			if leaked := tt.want != ""; leaked != (code != 0) || !strings.Contains(said.String(), tt.want) || !leaked && strings.Contains(said.String(), "LEAK") {
				t.Errorf("exit code %d, want %q: %s", code, tt.want, &said)
			}
			if bytes.Contains(said.Bytes(), []byte(seeded)) {
				t.Error("the leak was leaked once more")
			}
		})
	}
}

// canWatch asks the system itself, so that a sweep which cannot see files is never
// taken for one that can.
func canWatch(t *testing.T, dir string) bool {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	stop, err := watchFiles(ctx, newSweeper(findSeeded), dir)
	end()
	if err != nil {
		return false
	}
	stop()
	return true
}

// What is shown is what go test shows, and its exit code is kept.
func TestReport(t *testing.T) {
	lines := []string{
		`{"Action":"start","Package":"p"}`,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}`,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"chatter\n"}`,
		`{"Action":"pass","Package":"p","Test":"TestA"}`,
		`{"Action":"output","Package":"p","Output":"PASS\n"}`,
		`{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}`,
		`{"Action":"pass","Package":"p"}`,
		`{"Action":"output","Package":"q","Test":"TestB","Output":"    b.go:1: wrong\n"}`,
		`{"Action":"fail","Package":"q","Test":"TestB"}`,
		`{"Action":"output","Package":"q","Test":"TestC","Output":"    never ended\n"}`,
		`{"Action":"output","Package":"q","Output":"FAIL\tq\t0.1s\n"}`,
		`{"Action":"fail","Package":"q"}`,
		`{"ImportPath":"r","Action":"build-output","Output":"r.go:1: syntax error\n"}`,
	}
	var out, said bytes.Buffer
	file := filepath.Join(t.TempDir(), "events")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	code, err := run(t.Context(), findSeeded, &out, &said, []string{"sh", "-c", `cat "$0"; exit 3`, file})
	want := "ok  \tp\t0.1s\n    b.go:1: wrong\n    never ended\nFAIL\tq\t0.1s\nr.go:1: syntax error\n"
	if code != 3 || err != nil || out.String() != want {
		t.Errorf("exit code %d, %v:\n%s", code, err, &out)
	}
}

// The pattern finds what the fakes issue; were it to miss, every sweep would be clean.
func TestSecretsOfTheFakes(t *testing.T) {
	as := fake.NewAuth(&fake.AuthOptions{Clients: []fake.AuthClient{{ID: "x"}}})
	as.Serve("https://as.example")
	page := "https://as.example/authorize?response_type=code&client_id=x&redirect_uri=http://127.0.0.1/callback&state=s&code_challenge=" + strings.Repeat("c", 43) + "&code_challenge_method=S256"
	back, err := as.Consent(t.Context(), page)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(fake.Secrets([]byte(back.String()))); n != 1 {
		t.Errorf("%d secrets found in the answer of a consent page, want its code", n)
	}
}
