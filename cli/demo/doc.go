// Package demo holds the command demo, which shows usher at work on fake servers that
// it starts itself.
package demo
