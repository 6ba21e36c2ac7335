package search

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/internal/jsonx"
)

// question is one line of the labelled set.
type question struct{ server, tool, text string }

func readQuestions(t testing.TB) []question {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "search", "questions.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var out []question
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		target, text, ok := strings.Cut(line, "\t")
		server, tool, named := strings.Cut(target, "/")
		if !ok || !named {
			t.Fatalf("unreadable line %q", line)
		}
		out = append(out, question{server, tool, text})
	}
	return out
}

// realTools are the tools of published servers.
func realTools(t testing.TB) []Document {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "search", "servers", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var docs []Document
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tools, _ := jsonx.Get(bytes.TrimSpace(data), "tools")
		e := jsonx.Array(tools)
		for e.Next() {
			docs = append(docs, Document{
				Server: strings.TrimSuffix(filepath.Base(file), ".json"), Tool: jsonx.GetText(e.Value, "name"), Definition: e.Value,
			})
		}
		if e.Err() != nil {
			t.Fatalf("%s: %v", file, e.Err())
		}
	}
	return docs
}

// TestQuestionsAreFair wants a set that is large enough, about tools that exist, and
// that no search for names could answer.
func TestQuestionsAreFair(t *testing.T) {
	questions, docs := readQuestions(t), realTools(t)
	servers := map[string]bool{}
	known := map[string]bool{}
	for _, d := range docs {
		servers[d.Server] = true
		known[d.Server+"/"+d.Tool] = true
	}
	if len(questions) < 60 || len(servers) < 10 {
		t.Errorf("%d questions about %d servers, want at least 60 and 10", len(questions), len(servers))
	}
	for _, q := range questions {
		if !known[q.server+"/"+q.tool] {
			t.Errorf("there is no tool %s/%s", q.server, q.tool)
		}
		named := map[string]bool{}
		eachWord(q.tool, func(w []byte) { named[string(stem(w))] = true })
		eachWord(q.text, func(w []byte) {
			if s := string(stem(w)); named[s] {
				t.Errorf("%q holds %q of the name %s", q.text, s, q.tool)
			}
		})
	}
}

// within counts the questions whose tool is among the first five hits.
func within(x *Index, questions []question, missed func(question, []Hit)) int {
	found := 0
	for _, q := range questions {
		hits := x.Search(q.text, 5)
		ok := false
		for _, h := range hits {
			ok = ok || h.Server == q.server && h.Tool == q.tool
		}
		if ok {
			found++
		} else if missed != nil {
			missed(q, hits)
		}
	}
	return found
}

// TestSearchAnswersQuestions wants the right tool among the first five for four
// questions of five. A search that knows names only stands beside it.
func TestSearchAnswersQuestions(t *testing.T) {
	questions, docs := readQuestions(t), realTools(t)
	found := within(NewIndex(docs), questions, func(q question, hits []Hit) {
		var names []string
		for _, h := range hits {
			names = append(names, h.Server+"/"+h.Tool)
		}
		t.Logf("missed %s/%s: %q finds %s", q.server, q.tool, q.text, strings.Join(names, " "))
	})
	bare := make([]Document, len(docs))
	for i, d := range docs {
		bare[i] = Document{Server: d.Server, Tool: d.Tool, Definition: []byte(`{}`)}
	}
	byName := within(NewIndex(bare), questions, nil)
	t.Logf("%d of %d questions answered; by names only %d", found, len(questions), byName)
	if found*100 < 80*len(questions) {
		t.Errorf("%d of %d questions are answered, want four of five", found, len(questions))
	}
}
