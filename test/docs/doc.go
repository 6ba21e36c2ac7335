// Package docs keeps the pages of docs/ and README.md true.
//
// It owns what of them is made from the program (the command reference out of the
// help texts, the tables of settings, server options and bounds out of the code) and
// the tests that run the rest: every block tagged `console` is typed into a shell, every JSON example is read, every JSON shape and
// every link is checked. It refuses to own the words: those are written by people.
//
// The flow:
//
//	go run ./test/docs/gen     Pages → written to docs/ (make docs)
//	                           Manual → man pages (make man)
//	go test ./test/docs        Pages are up to date; blocks do what they say
//
// A page is either generated as a whole (docs/cli.md) or has parts between
// `<!-- begin NAME -->` and `<!-- end NAME -->`.
//
// What a fence may say, beside its language:
//
//	console            commands after "$ " (more lines of one after "> "), and what
//	                   they print; … stands for anything; without output nothing
//	                   is compared
//	console exit=N     the last command of the block ends with code N
//	json file=PATH     the block is written to PATH before what follows is run
//	json broken …      the block is a configuration with a mistake
//	json from=COMMAND  the command prints JSON of this very shape
//
// Each page has a world of its own: an empty home, a folder ~/notes, the commands
// usher and fake, stand-ins for npx and uvx, a server that wants a login (locked) and
// a browser whose person agrees to it (visit, in $BROWSER). A comment that begins with
// `<!-- setup` holds shell commands that are run and not shown.
package docs
