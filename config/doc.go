// Package config turns files into one validated configuration.
//
// It owns the shape of usher's own mcp.json (servers, inputs and the "usher"
// settings block), where those files live, which of them wins, how placeholders
// such as ${env:TOKEN} are written and filled in, what of a definition a person
// has to approve, what of it must be masked when it is printed, and edits of a
// file that leave its comments alone. The sub-package clients reads and writes
// the files of other MCP clients.
//
// It refuses to own execution: nothing here starts a command, opens a
// connection or remembers an approval. Whatever needs the outside (the
// environment, secrets, commands) comes in through LoadOptions and Lookup, and
// there is no package-level state.
//
// The flow:
//
//	Load       find the files (FindDirs, walk up from the working directory)
//	           → check permissions → check the syntax, with positions
//	           → decode servers and settings, with warnings
//	           → merge the layers → environment overrides → *Config
//	Server     Ask ApprovalReasons and Digest before it is used,
//	           then Resolve, at dial time, fills in the placeholders
//	Update     parse → splice → parse again → atomic write
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
