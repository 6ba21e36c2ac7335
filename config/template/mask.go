package template

// Mask is what a credential is printed as.
const Mask = "****"

// MaskArgs hides credentials in a command line, given as its arguments.
func MaskArgs(args []string) []string {
	return Masker().Args(args)
}

// MaskValue hides a value if its key or its looks give it away.
func MaskValue(key, v string) string {
	return Masker().Value(key, v)
}

// String writes the placeholder so that it may be printed.
func (p Placeholder) String() string {
	return Masker().placeholder(p, "", false)
}

// MaskTree masks the strings of decoded JSON by their keys.
func MaskTree(key string, v any) any {
	switch t := v.(type) {
	case string:
		if shown := MaskValue(key, Escape(t)); shown != Escape(t) {
			return shown
		}
		return t
	case map[string]any:
		out := make(map[string]any, len(t))
		for k, e := range t {
			out[k] = MaskTree(k, e)
		}
		return out
	case []any:
		out := make([]any, len(t))
		for i, e := range t {
			out[i] = MaskTree(key, e)
		}
		return out
	}
	return v
}
