//go:build !unix

package upstream

// canPeek: whether the peer of an idle connection has left cannot be found out, so
// everything goes through net/http.
const canPeek = false

func nothingToRead(uintptr) bool { return false }
