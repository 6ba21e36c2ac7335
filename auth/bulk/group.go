package bulk

import "slices"

// Group is what belongs to one authorization server.
type Group[T any] struct {
	Issuer string // "" when it is not known
	Items  []T
}

// ByIssuer puts items of one authorization server together, since the second consent
// at a server is usually one click. Groups come in the order of their first items,
// items in the order given; those without an issuer come last.
func ByIssuer[T any](items []T, issuer func(T) string) []Group[T] {
	var groups []Group[T]
	at := map[string]int{}
	for _, item := range items {
		name := issuer(item)
		i, ok := at[name]
		if !ok {
			i = len(groups)
			at[name] = i
			groups = append(groups, Group[T]{Issuer: name})
		}
		groups[i].Items = append(groups[i].Items, item)
	}
	if i, ok := at[""]; ok {
		none := groups[i]
		groups = append(slices.Delete(groups, i, i+1), none)
	}
	return groups
}
