// Package jsonc reads JSON with comments and trailing commas, and says what is wrong with
// it in words a person would use.
//
//	v, err := jsonc.Parse(&jsonc.Source{File: path, Text: text}) // with offsets
//	value, err := jsonc.Decode(path, text)                       // maps and slices
//
// Errors are [*Error]: file, line, column, and an excerpt in which credentials are
// starred out. Nesting is limited. The package does not know what the keys mean.
//
// A checker of its own runs before hujson, whose errors name offsets only.
package jsonc
