package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
)

// exempt begins an element of the paths of files in which a test keeps secrets on
// purpose, to look at them itself.
const exempt = "may-hold-secrets"

// verifierShape is what a PKCE verifier looks like, and much else.
var verifierShape = regexp.MustCompile(`[A-Za-z0-9_-]{43}`)

// sweeper collects leaks. It may be used from several goroutines.
type sweeper struct {
	find func(text []byte) [][]byte // finds secrets

	mu     sync.Mutex        // guards what follows
	leaks  map[string]int    // by what is told of them
	shapes map[string]string // what looked like a verifier, and where it was first seen
	swept  map[string]int    // how many texts of each kind were looked at
}

func newSweeper(find func([]byte) [][]byte) *sweeper {
	return &sweeper{find: find, leaks: map[string]int{}, shapes: map[string]string{}, swept: map[string]int{}}
}

// text looks at one text; kind and place say what it is.
func (s *sweeper) text(kind, place string, text []byte) {
	found := s.find(text)
	shapes := verifierShape.FindAll(text, 1000)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.swept[kind]++
	for _, f := range found {
		// A leak is told without being leaked once more.
		kindOf, _, _ := bytes.Cut(f, []byte("-"))
		s.leaks[fmt.Sprintf("%s: %s holds %s-…", kind, place, kindOf)]++
	}
	for _, v := range shapes {
		if _, seen := s.shapes[string(v)]; !seen {
			s.shapes[string(v)] = kind + ": " + place
		}
	}
}

// verifiers compares what looked like a verifier with those in the book.
func (s *sweeper) verifiers(book string) error {
	files, err := filepath.Glob(filepath.Join(book, "*"))
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		for v := range bytes.FieldsSeq(text) {
			s.swept["verifiers"]++
			if place, seen := s.shapes[string(v)]; seen {
				s.leaks[place+" holds a verifier"]++
			}
		}
	}
	return nil
}

// tell writes what was found and reports whether anything was.
func (s *sweeper) tell(w io.Writer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	kinds := make([]string, 0, len(s.swept))
	for kind, n := range s.swept {
		kinds = append(kinds, fmt.Sprintf("%d %s", n, kind))
	}
	slices.Sort(kinds)
	fmt.Fprintf(w, "canary: looked for secrets in %v: %d places hold some\n", kinds, len(s.leaks))
	lines := make([]string, 0, len(s.leaks))
	for leak, n := range s.leaks {
		lines = append(lines, fmt.Sprintf("canary: LEAK in %s (%d times)", leak, n))
	}
	slices.Sort(lines)
	for _, line := range lines {
		fmt.Fprintln(w, line)
	}
	return len(lines) > 0
}
