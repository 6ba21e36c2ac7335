// Package config turns files into one validated configuration.
//
//	cfg, err := config.Load(config.LoadOptions{})
//	server, ok := cfg.Server("github")
//	ready, err := server.Resolve(ctx, lookup) // placeholders filled in
//
// [Load] always returns a Config; what is wrong with one server stands in its Problem
// and leaves the others alone. Rules and budgets that cannot be read stop what they
// guard ([Settings].Problem); other mistakes leave the default and a warning. Project
// files are held back until a person approves them ([Server.ApprovalReasons],
// [Server.Digest]).
//
// It refuses to own execution: nothing here starts a command, opens a connection or
// remembers an approval. What needs the outside (the environment, secrets, commands)
// comes in through LoadOptions and Lookup, and there is no package-level state.
//
// The flow of Load:
//
//	find the files (FindDirs, walk up from the working directory)
//	→ check permissions → check the syntax, with positions (config/jsonc)
//	→ decode servers and settings, with warnings
//	→ merge the layers → environment overrides → *Config
//
// Strings with placeholders and the masking of credentials are config/template's,
// changes of a file config/edit's, files of other MCP clients config/clients'.
//
// # Placeholders
//
// ${env:VAR}, ${VAR}, ${VAR:-default}, ${env:VAR:-default}, ${file:PATH},
// ${secret:NAME}, ${input:ID} and ${cmd:COMMAND} may stand in any string of a
// server. The default, itself a template, is used when the variable is unset
// or empty. Braces inside a placeholder must balance. What a placeholder
// yields is never expanded again.
//
// A dollar sign is special only before an opening brace. There, two dollars
// stand for one: "$${X}" is the text "${X}", and "$$${X}" is a dollar followed
// by the value of X. Everywhere else dollars are themselves, so "pa$$word"
// needs no care.
package config
