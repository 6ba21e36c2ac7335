package naming

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// maxName is how long the name of a tool or prompt may be.
const maxName = 128

// accountMark sets an account off from its server in direct names.
const accountMark = "--"

// sumLength is the number of hex digits at the end of a marked name.
const sumLength = 16

// Scheme makes the names under which tools and prompts of all servers stand side
// by side. It is a pure function of what it names, so that replicas agree and a
// server that comes or goes renames nobody else.
type Scheme struct{ Separator string }

// Shown is the name of what a server calls name: `server__name`, and for an account
// `server--account__name`. No two things share a name: where that form could be
// read in two ways (a server's name holds the separator, say), is too long or holds
// a character that a name may not have, the name ends with a mark, a hash over all
// three parts. Names that look as if they were marked are marked as well.
func (n Scheme) Shown(server, account, name string) string {
	full := n.ShownPart(server, account) + name
	if n.plain(server, account, full[:len(full)-len(n.Separator)-len(name)], name, full) {
		return full
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", server, account, name))
	mark := "-" + hex.EncodeToString(sum[:])[:sumLength]
	clean := strings.Map(nameRune, full)
	return clean[:min(len(clean), maxName-len(mark))] + mark
}

// ShownPart is what the names of a server begin with, unless they are marked.
func (n Scheme) ShownPart(server, account string) string {
	if account != "" {
		server += accountMark + account
	}
	return server + n.Separator
}

// plain reports whether the parts can be told from full alone: the first separator
// ends the server's part, and the first accountMark in that ends the server's name.
func (n Scheme) plain(server, account, part, name, full string) bool {
	switch {
	case name == "" || len(full) > maxName || marked(full):
		return false
	case strings.Index(full, n.Separator) != len(part):
		return false
	case account == "" && strings.Contains(server, accountMark), account != "" && strings.Index(part, accountMark) != len(server):
		return false
	}
	return strings.IndexFunc(full, func(r rune) bool { return nameRune(r) != r }) < 0
}

// marked reports whether a name ends like those that carry a hash.
func marked(name string) bool {
	at := len(name) - sumLength - 1
	if at < 0 || name[at] != '-' {
		return false
	}
	return strings.Trim(name[at+1:], "0123456789abcdef") == ""
}

// nameRune returns what stands for r in a name.
func nameRune(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.' {
		return r
	}
	return '_'
}

// label is how people and agents name a server or an account at it.
func Label(server, account string) string {
	if account == "" {
		return server
	}
	return server + "@" + account
}
