// Package rules holds the rules of this repository as tests: who may import
// whom, how long files and functions may be, what every package must say about
// itself, and words that must not be committed.
//
// It owns no product code. Each rule is a function from source to findings, and
// has a test of its own on a source that breaks it, so that a rule that has
// stopped looking is noticed.
//
// To add a package, add its row to imports_test.go.
package rules
