package surface

import (
	"cmp"
	"slices"
	"strings"
)

// maxNear is how many names an error suggests.
const maxNear = 3

// nearest returns the candidates that may have been meant: those that differ by a
// slip, and those that hold the name or are held in it. The closest come first.
func nearest(name string, candidates []string) []string {
	type scored struct {
		name string
		dist int
	}
	if name == "" {
		return nil
	}
	var near []scored
	low := strings.ToLower(name)
	limit := max(2, len([]rune(low))/3)
	if len(low) < 4 {
		limit = 1
	}
	for _, c := range candidates {
		other := strings.ToLower(c)
		d := editDistance(low, other)
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
