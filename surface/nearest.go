package surface

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	limits "github.com/usher-mcp/usher/internal/limit"
)

// maxNear is how many names an error suggests.
const maxNear = 3

// longestSuggested is how long a name may be, in bytes, that is compared: nobody
// mistypes more.
const longestSuggested = 256

// stepBudget is what one comparison with many names may still cost. Servers choose
// how many there are and how long.
type stepBudget struct{ left int }

func (b *stepBudget) spend(steps int) (ok bool) {
	b.left -= steps
	return b.left > 0
}

// nearest returns the candidates that may have been meant: those that differ by a
// slip, and those that hold the name or are held in it. The closest come first.
func nearest(name string, candidates []string) []string {
	return nearestWithin(&stepBudget{left: limits.SuggestionSteps}, name, candidates)
}

func nearestWithin(budget *stepBudget, name string, candidates []string) []string {
	type scored struct {
		name string
		dist int
	}
	if name == "" || len(name) > longestSuggested {
		return nil
	}
	var near []scored
	low := strings.ToLower(name)
	length := utf8.RuneCountInString(low)
	limit := max(2, length/3)
	if len(low) < 4 {
		limit = 1
	}
	for _, c := range candidates {
		if len(c) > longestSuggested {
			continue
		}
		other := strings.ToLower(c)
		more := utf8.RuneCountInString(other) - length
		steps, d := len(other), max(more, -more) // the distance is no less than that
		if d <= limit {
			steps += length * (length + more)
		}
		if !budget.spend(steps) {
			break
		}
		if d <= limit {
			d = editDistance(low, other)
		}
		switch {
		case d <= limit:
		case len(low) >= 3 && strings.Contains(other, low), len(other) >= 3 && strings.Contains(low, other):
			d += limit // behind what is merely misspelt
		default:
			continue
		}
		near = append(near, scored{c, d})
	}
	slices.SortFunc(near, func(a, b scored) int { return cmp.Or(cmp.Compare(a.dist, b.dist), cmp.Compare(a.name, b.name)) })
	var out []string
	for _, n := range near[:min(len(near), maxNear)] {
		out = append(out, n.name)
	}
	return out
}

// editDistance counts insertions, deletions and replacements. Long names are cut:
// nobody mistypes a hundred letters.
func editDistance(a, b string) int {
	x, y := []rune(a), []rune(b)
	x, y = x[:min(len(x), 100)], y[:min(len(y), 100)]
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j := range y {
			cost := diagonal
			if x[i] != y[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(y)]
}
