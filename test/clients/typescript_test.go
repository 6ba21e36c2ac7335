package clients

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/test/need"
)

// conversation is one of the script: a client, a revision, a way to usher.
type conversation struct {
	SDK     string   `json:"sdk"`
	Version string   `json:"version"`
	Auto    bool     `json:"auto,omitempty"` // the client finds out by itself
	URL     string   `json:"url,omitempty"`
	Command *started `json:"command,omitempty"`
	Servers []string `json:"servers"`
	Asks    bool     `json:"asks"`
}

type started struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
}

// seen is what a client saw in a conversation.
type seen struct {
	Event     string   `json:"event"`
	Error     string   `json:"error"`
	Version   string   `json:"version"`
	Tools     []string `json:"tools"`
	After     []string `json:"after"` // tools, after the lists changed
	Echoed    []string `json:"echoed"`
	Prompts   []string `json:"prompts"`
	Asked     []string `json:"asked"`
	Answers   []string `json:"answers"`
	Failed    []bool   `json:"failed"`
	Resources []string `json:"resources"`
	Progress  int      `json:"progress"`
}

// legacyVersions are the revisions with sessions that the clients speak.
var legacyVersions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// The official TypeScript clients of both generations, in every revision they speak,
// over stdio and HTTP, before servers of both eras: lists, calls, prompts,
// resources, questions to the person, progress, and lists that change because
// usher's configuration does.
func TestTypeScriptClients(t *testing.T) {
	w := newWorld(t)
	var cases []conversation
	add := func(sdk, version string, auto bool) {
		c := conversation{SDK: sdk, Version: version, Auto: auto, Servers: []string{"new", "old"}, Asks: version >= "2025-06-18"}
		c.URL = "HTTP"
		cases = append(cases, c)
		if sdk == "v2" && !slices.Contains([]string{"2024-11-05", "2026-07-28"}, version) && !need.Proof() {
			return // the long form; gateway tests every revision on stdio
		}
		c.URL, c.Command = "", &started{w.program, []string{"serve", "--surface", "direct"}, map[string]string{"HOME": w.home, "USHER_HOME": w.home, "GORACE": "atexit_sleep_ms=0"}}
		cases = append(cases, c)
	}
	for _, version := range legacyVersions {
		add("v1", version, false)
		add("v2", version, false)
	}
	add("v2", "2026-07-28", false)
	add("v2", "2026-07-28", true)
	url := w.gateway("--surface", "direct")
	for i := range cases {
		if cases[i].URL != "" {
			cases[i].URL = url
		}
	}
	w.converse(cases)
}

// converse runs the script and judges what it saw.
func (w *world) converse(cases []conversation) {
	t := w.t
	t.Helper()
	plan, err := json.Marshal(map[string]any{
		"v1": need.Package(t, "@modelcontextprotocol/sdk"), "v2": need.Package(t, "@modelcontextprotocol/client"), "cases": cases,
	})
	if err != nil {
		t.Fatal(err)
	}
	script := exec.CommandContext(t.Context(), need.Node(t), "testdata/converse.mjs", string(plan))
	script.Stderr = t.Output()
	script.WaitDelay = 10 * time.Second
	stdin, err := script.StdinPipe() // it ends with us
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := script.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := script.Start(); err != nil {
		t.Fatal(err)
	}
	added, n := "", 0
	answers(t, stdout, func(s seen) bool {
		if s.Event == "listening" {
			added = w.change()
			_, err := fmt.Fprintln(stdin, added)
			return err == nil
		}
		c := cases[n]
		way := "stdio"
		if c.URL != "" {
			way = "http"
		}
		t.Run(c.SDK+" "+c.Version+" "+way, func(t *testing.T) { judge(t, c, s, added) })
		n++
		return true
	})
	if err := script.Wait(); err != nil || n != len(cases) {
		t.Errorf("%d of %d conversations: %v", n, len(cases), err)
	}
}

func judge(t *testing.T, c conversation, s seen, added string) {
	t.Helper()
	if s.Error != "" {
		t.Fatal(s.Error)
	}
	if s.Version != c.Version {
		t.Errorf("negotiated %s", s.Version)
	}
	for _, server := range c.Servers {
		if !slices.Contains(s.Tools, server+"__echo") {
			t.Errorf("%s is missing in %v", server, s.Tools)
		}
	}
	want := seen{
		Echoed: []string{`{"n":9007199254740991}`, `{"n":9007199254740991}`}, Prompts: []string{"Say hello.", "Say hello."},
		Failed: []bool{true, true}, Progress: s.Progress, Asked: []string{}, Answers: []string{},
	}
	if c.Asks {
		want.Asked = []string{"from new", "from old"}
		want.Answers = s.Answers
		if len(s.Answers) != 2 || s.Answers[0] != s.Answers[1] {
			t.Errorf("answers %q", s.Answers)
		}
	}
	if s.Progress < 1 {
		t.Error("no progress was reported")
	}
	if len(s.Resources) < 2 {
		t.Errorf("resources %q", s.Resources)
	}
	if !slices.Contains(s.After, added+"__echo") {
		t.Errorf("after the change %s is missing in %v", added, s.After)
	}
	got := seen{Echoed: s.Echoed, Prompts: s.Prompts, Failed: s.Failed, Progress: s.Progress, Asked: s.Asked, Answers: s.Answers}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
