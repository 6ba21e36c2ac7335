// Package suggest finds what a mistyped name was meant to be.
//
//	suggest.Nearest("githb", names)    // ["github"]
//	suggest.DidYouMean("githb", names) // `; did you mean "github"?`
//
// The work is limited however many candidates there are. It owns no list of names.
package suggest

import (
	"cmp"
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
	type scored struct {
		name string
		dist int
	}
	if len(name) > longestSuggested {
		return nil
	}
	var close []scored
	low := strings.ToLower(name)
	length := utf8.RuneCountInString(low)
	slips := max(1, length/3)
	budget := limit.SuggestionSteps
	for _, c := range candidates {
		if len(c) > longestSuggested {
			continue
		}
		other := strings.ToLower(c)
		more := utf8.RuneCountInString(other) - length
		d := max(more, -more) // the distance is no less than that
		if d <= slips {
			budget -= length * (length + more)
			d = distance(low, other)
		}
		if budget -= len(other); budget <= 0 {
			break
		}
		if d <= slips || (len(low) >= 3 && strings.HasPrefix(other, low)) {
			close = append(close, scored{c, d})
		}
	}
	slices.SortFunc(close, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.dist, b.dist), cmp.Compare(a.name, b.name))
	})
	var out []string
	for _, s := range close[:min(3, len(close))] {
		out = append(out, s.name)
	}
	return out
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
