// Package template reads the strings of a configuration: the placeholders in them, and
// the credentials that must not be shown.
//
//	parts, err := template.Parse("Bearer ${env:TOKEN}")
//	shown := template.MaskArgs(args)
//
// [Parse] splits a string into text and placeholders, [Builder] puts one together,
// [Escape] makes text that is meant literally. The syntax is described in package
// config. Masking goes by names ([IsSecretName]) and by looks ([LooksSecret]), so a
// harmless value may be hidden now and then.
//
// The package fills nothing in: that is [config.Server.Resolve].
//
// [config.Server.Resolve]: https://pkg.go.dev/github.com/usher-mcp/usher/config#Server.Resolve
package template
