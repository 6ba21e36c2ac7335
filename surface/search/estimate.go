package search

// Tokens estimates how many tokens a model reads for a text, without the vocabulary
// of any model: a word costs one token for every six letters begun, a number one
// for every three digits, a run of punctuation one for every two characters; single
// spaces belong to the word behind them. Characters beyond ASCII cost one each. On
// the definitions of real tools it is within a tenth or so of what common
// vocabularies give; it errs upwards.
func Tokens(text []byte) int {
	n := 0
	for i := 0; i < len(text); {
		class := tokenClass(text[i])
		j := i + 1
		for j < len(text) && tokenClass(text[j]) == class {
			j++
		}
		n += class.cost(j - i)
		i = j
	}
	return n
}

type textClass uint8

const (
	blanks textClass = iota
	letters
	digits
	marks
	wide
	continued // the rest of a character beyond ASCII
)

func tokenClass(c byte) textClass {
	switch {
	case c >= 0xC0:
		return wide
	case c >= 0x80:
		return continued
	case c == ' ' || c == '\n' || c == '\t' || c == '\r':
		return blanks
	case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		return letters
	case c >= '0' && c <= '9':
		return digits
	}
	return marks
}

func (c textClass) cost(length int) int {
	switch c {
	case blanks:
		return (length - 1 + 3) / 4
	case letters:
		return (length + 5) / 6
	case digits:
		return (length + 2) / 3
	case marks:
		return (length + 1) / 2
	case wide:
		return length
	}
	return 0
}
