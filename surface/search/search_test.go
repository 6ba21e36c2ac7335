package search

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func words(text string) []string {
	var out []string
	eachWord(text, func(w []byte) { out = append(out, string(w)) })
	return out
}

func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		"search_issues":         {"search", "issues"},
		"searchIssues":          {"search", "issues"},
		"HTTPServer-list.v2":    {"http", "server", "list", "v2"},
		"read/text file":        {"read", "text", "file"},
		"S3Bucket":              {"s3", "bucket"},
		"pełna nazwa":           {"pełna", "nazwa"},
		"搜索 issues":             {"搜", "索", "issues"},
		"":                      nil,
		"__--..":                nil,
		"ABC":                   {"abc"},
		"getURLForID":           {"get", "url", "for", "id"},
		"list\u200bfiles \x00x": {"list", "files", "x"},
	} {
		if diff := cmp.Diff(want, words(text)); diff != "" {
			t.Errorf("words of %q (-want +got)\n%s", text, diff)
		}
	}
}

func TestStem(t *testing.T) {
	stem := func(w string) string { return string(stem([]byte(w))) }
	for _, family := range [][]string{
		{"issue", "issues"},
		{"create", "creates", "created", "creating"},
		{"delete", "deleting", "deleted"},
		{"query", "queries"},
		{"search", "searches", "searching"},
		{"run", "runs", "running"},
		{"file", "files"},
		{"list", "lists", "listing", "listed"},
		{"call", "calls", "calling"},
		{"pass", "passes", "passing"},
		{"branch", "branches"},
		{"directory", "directories"},
	} {
		for _, w := range family[1:] {
			if stem(w) != stem(family[0]) {
				t.Errorf("stem(%q) = %q, stem(%q) = %q", w, stem(w), family[0], stem(family[0]))
			}
		}
	}
	for _, pair := range [][2]string{{"status", "stat"}, {"user", "use"}, {"string", "str"}, {"need", "ne"}, {"bus", "bu"}} {
		if stem(pair[0]) == stem(pair[1]) {
			t.Errorf("%q and %q are both %q", pair[0], pair[1], stem(pair[0]))
		}
	}
}

func tool(name, title, description string, params ...string) []byte {
	var p []string
	for _, param := range params {
		p = append(p, fmt.Sprintf(`%q:{"type":"string","description":"the %s"}`, param, param))
	}
	return fmt.Appendf(nil, `{"name":%q,"title":%q,"description":%q,"inputSchema":{"type":"object","properties":{%s}}}`,
		name, title, description, strings.Join(p, ","))
}

var world = NewIndex([]Document{
	{"github", "search_issues", tool("search_issues", "", "Find issues and pull requests.\nMore text.", "query", "labels")},
	{"github", "create_issue", tool("create_issue", "Create an issue", "Opens a new issue in a repository", "title", "body")},
	{"github", "delete_repo", tool("delete_repo", "", "Deletes a repository for ever", "owner", "repo")},
	{"linear", "list_issues", tool("list_issues", "", "Lists issues of a team", "team")},
	{"files", "readTextFile", tool("readTextFile", "", "Returns the contents of a file", "path", "encoding")},
	{"files", "write", tool("write_file", "", "Stores bytes", "path")},
	{"mail", "send", tool("send", "", "Sends a message", "recipient", "subject")},
	{"broken", "odd", []byte(`not json`)},
	{"twin-b", "same", tool("same", "", "quokka")},
	{"twin-a", "same", tool("same", "", "quokka")},
})

func TestSearchFinds(t *testing.T) {
	for query, want := range map[string]string{
		"create issue":          "github/create_issue",
		"searching for issues":  "github/search_issues",
		"linear issues":         "linear/list_issues",
		"remove or delete repo": "github/delete_repo",
		"read file":             "files/readTextFile",
		"recipient":             "mail/send", // a parameter
		"encod":                 "files/readTextFile",
		"write_file":            "files/write", // the server's own name
		"odd":                   "broken/odd",
		"github repository":     "github/delete_repo",
		"QUOKKA":                "twin-a/same", // equal scores: by server
	} {
		hits := world.Search(query, 3)
		if len(hits) == 0 || hits[0].Server+"/"+hits[0].Tool != want {
			t.Errorf("%q finds %v, want %s first", query, hits, want)
		}
	}
}

func TestSearchBounds(t *testing.T) {
	if hits := world.Search("zzz", 5); len(hits) != 0 {
		t.Errorf("a word that nobody has finds %v", hits)
	}
	if hits := world.Search("", 5); len(hits) != 0 {
		t.Errorf("nothing finds %v", hits)
	}
	if hits := world.Search("issue", 1); len(hits) != 1 {
		t.Errorf("%d hits, want 1", len(hits))
	}
	if hits := NewIndex(nil).Search("issue", 0); len(hits) != 0 {
		t.Errorf("an empty index finds %v", hits)
	}
	want := []Hit{{Server: "github", Tool: "search_issues", Title: "Find issues and pull requests."}}
	got := world.Search("pull", 5)
	for i := range got {
		if got[i].Score <= 0 {
			t.Errorf("score %v", got[i].Score)
		}
		got[i].Score = 0
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestTitleIsOneLine(t *testing.T) {
	long := strings.Repeat("word ", 50)
	for def, want := range map[string]string{
		string(tool("x", "A title", "text")):             "A title",
		string(tool("x", "  ", "first\nsecond")):         "first",
		string(tool("x", "", "\n\n  a \t b\r\nsecond")):  "a b",
		string(tool("x", "", "")):                        "",
		`{"name":"x","description":5}`:                   "",
		string(tool("x", "", long)):                      strings.TrimRight(long[:99], " ") + "…",
		string(tool("x", "", strings.Repeat("ł", 2000))): strings.Repeat("ł", 99) + "…",
	} {
		if got := TitleOf([]byte(def)); got != want {
			t.Errorf("title of %.60s: %q, want %q", def, got, want)
		}
	}
}

// The same catalog in any order gives the same hits in the same order.
func TestSearchIsDeterministic(t *testing.T) {
	docs := many(300)
	first := NewIndex(docs).Search("create project file message", 50)
	for range 5 {
		rand.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
		got := NewIndex(docs).Search("message file project create", 50)
		for i := range got {
			if d := got[i].Score - first[i].Score; d > 1e-9 || d < -1e-9 {
				t.Fatalf("score %v, was %v", got[i].Score, first[i].Score)
			}
			got[i].Score = first[i].Score
		}
		if diff := cmp.Diff(first, got); diff != "" {
			t.Fatalf("(-first +shuffled)\n%s", diff)
		}
	}
}

func many(n int) []Document {
	r := rand.New(rand.NewPCG(1, 2))
	verbs := []string{"create", "list", "delete", "update", "search", "get", "send", "archive"}
	nouns := []string{"issue", "project", "file", "message", "user", "branch", "invoice", "calendar", "event", "page"}
	pick := func(from []string) string { return from[r.IntN(len(from))] }
	docs := make([]Document, n)
	for i := range docs {
		var text strings.Builder
		for range 15 {
			text.WriteString(pick(verbs) + " the " + pick(nouns) + fmt.Sprint(r.IntN(500)) + " ")
		}
		name := fmt.Sprintf("%s_%s_%d", pick(verbs), pick(nouns), i)
		docs[i] = Document{Server: fmt.Sprintf("server%d", i%100), Tool: name, Definition: tool(name, "", text.String(), pick(nouns), pick(nouns)+"_id")}
	}
	return docs
}

// A search over 10,000 tools must feel immediate: at most 50 ms for all but one in
// a hundred. On a machine that others use, under the race detector, only the
// median says something about this code.
func TestSearchIsQuick(t *testing.T) {
	x := NewIndex(many(10_000))
	var times []time.Duration
	for i := range 100 {
		start := time.Now()
		x.Search(fmt.Sprintf("create the issue in project%d for a user", i), 20)
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	at := 50
	if os.Getenv("USHER_PROOF") != "" {
		at = 98
	}
	if got := times[at]; got > 50*time.Millisecond {
		t.Errorf("percentile %d is %v, want at most 50ms", at, got)
	}
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte(`{"name":"a","inputSchema":{"properties":{"x":{"items":{"properties":{"y":{}}}}}}}`), "a x")
	f.Add([]byte(`{"name":5,"title":"\ud800"}`), "\xff")
	f.Add(tool("create_issue", "t", "d", "p"), "create issues")
	f.Fuzz(func(t *testing.T, def []byte, query string) {
		x := NewIndex([]Document{{"s", "t", def}})
		for _, h := range x.Search(query, 1) {
			if h.Score <= 0 || strings.ContainsAny(h.Title, "\n\r") {
				t.Fatalf("%+v", h)
			}
		}
	})
}

func BenchmarkSearch(b *testing.B) {
	x := NewIndex(many(10_000))
	b.ReportAllocs()
	for b.Loop() {
		x.Search("create the issue in project7 for a user", 20)
	}
}

func BenchmarkNewIndex(b *testing.B) {
	docs := many(1_000)
	b.ReportAllocs()
	for b.Loop() {
		NewIndex(docs)
	}
}
