package jsonx

import "bytes"

// Duplicate returns a name that two members of obj share, and false when all names
// differ or obj is not an object. It looks at obj itself, not at what is nested in it.
// Readers take the first or the last of such members, so what one reader has
// checked is not what the next one does.
func Duplicate(obj []byte) (string, bool) {
	var few [32][]byte
	seen := few[:0]
	var many map[string]bool // takes over when few is full
	for m := Object(obj); m.Next(); {
		if many != nil {
			if many[string(m.Key)] {
				return string(m.Key), true
			}
			many[string(m.Key)] = true
			continue
		}
		for _, s := range seen {
			if bytes.Equal(s, m.Key) {
				return string(m.Key), true
			}
		}
		if seen = append(seen, m.Key); len(seen) == len(few) {
			many = make(map[string]bool, 2*len(few))
			for _, s := range seen {
				many[string(s)] = true
			}
		}
	}
	return "", false
}
