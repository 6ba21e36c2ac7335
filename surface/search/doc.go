// Package search finds tools by words.
//
//	index := search.NewIndex(documents)
//	for _, hit := range index.Search("create an issue", 5) { … }
//
// Words are split where the case changes and reduced to their stems; tools are ranked with
// Okapi BM25, a word in a name counting more than one in a description. An [Index] never
// changes, so any number of searches may run at once. Queries are limited in their number
// of words, and a search takes time linear in the tools that match.
//
// [Tokens] estimates what a text costs a model to read. The package does not know servers
// or policy: its caller decides which tools are in the index.
package search
