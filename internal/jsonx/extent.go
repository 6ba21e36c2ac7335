package jsonx

// Extent returns how deep arrays and objects nest in raw, which is valid JSON, and
// how many members and elements they have together. A scalar has neither.
func Extent(raw []byte) (depth, values int) {
	open := 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			end, err := skipString(raw, i)
			if err != nil {
				return depth, values
			}
			i = end - 1
		case '{', '[':
			open++
			depth = max(depth, open)
			if next := skipSpace(raw, i+1); next < len(raw) && raw[next] != '}' && raw[next] != ']' {
				values++
			}
		case '}', ']':
			open--
		case ',':
			values++
		}
	}
	return depth, values
}

// EachText calls f with every string in raw, which is valid JSON, names of members
// included, until f returns false. It reads raw once, however deep it nests. The
// bytes are f's only until it returns.
func EachText(raw []byte, f func(text []byte) bool) {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '"' {
			continue
		}
		end, err := skipString(raw, i)
		if err != nil || !f(unquote(raw[i:end])) {
			return
		}
		i = end - 1
	}
}
