// Package suggest finds what a mistyped name was meant to be.
//
//	suggest.Nearest("githb", names)    // ["github"]
//	suggest.Similar("issues", tools)   // ["list_issues", "search_issues"]
//	suggest.DidYouMean("githb", names) // `; did you mean "github"?`
//
// The work is limited however many candidates there are. It owns no list of names.
package suggest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/usher-mcp/usher/internal/limit"
)

// longestSuggested is how long a name may be, in bytes, that is compared.
const longestSuggested = 256

// Nearest returns up to three candidates that differ from name by a slip of
// the fingers, the closest first. Of very many candidates it compares those that come
// first.
func Nearest(name string, candidates []string) []string {
	low := strings.ToLower(name)
	r := ranking{low: low, slips: max(1, utf8.RuneCountInString(low)/3), related: isPrefix, steps: limit.SuggestionSteps}
	return r.best(candidates)
}

// Similar is [Nearest] for names that a model recalls in part: it allows more slips, and
// also returns candidates that contain name or are contained in it, after the others.
func Similar(name string, candidates []string) []string {
	r := similar(name)
	return r.best(candidates)
}

func similar(name string) ranking {
	low := strings.ToLower(name)
	slips := max(2, utf8.RuneCountInString(low)/3)
	if len(low) < 4 {
		slips = 1
	}
	return ranking{low: low, slips: slips, related: overlaps, behind: slips, steps: limit.SuggestionSteps}
}

// ranking compares one name with many candidates. Servers choose how many there are and
// how long.
type ranking struct {
	low     string // the name, in lower case
	slips   int    // edits up to which a candidate counts as misspelt
	related func(name, candidate string) bool
	behind  int // added to the distance of candidates that are only related
	steps   int // what comparing may still cost
}

type scored struct {
	name string
	dist int
}

// best returns up to three candidates, the closest first.
func (r *ranking) best(candidates []string) []string {
	if r.low == "" || len(r.low) > longestSuggested {
		return nil
	}
	var near []scored
	length := utf8.RuneCountInString(r.low)
	for _, c := range candidates {
		if len(c) > longestSuggested {
			continue
		}
		other := strings.ToLower(c)
		more := utf8.RuneCountInString(other) - length
		d := max(more, -more) // the distance is no less than that
		if r.steps -= len(other); d <= r.slips {
			r.steps -= length * (length + more)
		}
		if r.steps <= 0 {
			break
		}
		if d <= r.slips {
			d = distance(r.low, other)
		}
		switch {
		case d <= r.slips:
			near = append(near, scored{c, d})
		case r.related(r.low, other):
			near = append(near, scored{c, d + r.behind})
		}
	}
	slices.SortFunc(near, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.dist, b.dist), cmp.Compare(a.name, b.name))
	})
	var out []string
	for _, s := range near[:min(3, len(near))] {
		out = append(out, s.name)
	}
	return out
}

// isPrefix reports whether name is the beginning of candidate.
func isPrefix(name, candidate string) bool {
	return len(name) >= 3 && strings.HasPrefix(candidate, name)
}

// overlaps reports whether one of two names contains the other.
func overlaps(name, candidate string) bool {
	return len(name) >= 3 && strings.Contains(candidate, name) || len(candidate) >= 3 && strings.Contains(name, candidate)
}

// distance is the edit distance in which swapping two neighbours counts as one
// edit. Long strings are cut: nobody mistypes a name of a hundred letters.
func distance(a, b string) int {
	const longest = 100
	x, y := []rune(a), []rune(b)
	x, y = x[:min(len(x), longest)], y[:min(len(y), longest)]
	var before, prev, row []int
	prev = make([]int, len(y)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row = make([]int, len(y)+1)
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev = prev, row
	}
	return prev[len(y)]
}

// DidYouMean turns candidates into the end of a message.
func DidYouMean(name string, candidates []string) string {
	near := Nearest(name, candidates)
	if len(near) == 0 {
		return ""
	}
	return `; did you mean "` + near[0] + `"?`
}

// Question asks whether one of the nearest candidates was meant, "" when none is near.
func Question(name string, candidates []string) string {
	near := Nearest(name, candidates)
	switch len(near) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("did you mean %q?", near[0])
	}
	for i, n := range near {
		near[i] = fmt.Sprintf("%q", n)
	}
	return "did you mean " + strings.Join(near[:len(near)-1], ", ") + " or " + near[len(near)-1] + "?"
}
