package headers

import (
	"net/http"
	"strconv"

	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
)

// Mismatch is the error for a header that does not say what the body says.
func Mismatch(format string, args ...any) *mcp.Error {
	return mcp.Errorf(mcp.CodeHeaderMismatch, "header mismatch: "+format, args...)
}

// Single returns the value of a header that must stand there once.
func Single(h http.Header, name string) (value string, present bool, err *mcp.Error) {
	values := h[name]
	switch len(values) {
	case 0:
		return "", false, nil
	case 1:
		return values[0], true, nil
	}
	return "", true, Mismatch("%s stands there %d times", name, len(values))
}

// CheckMethodAndName compares method and name with their headers, so that nobody on the
// way decides by other values than we do.
func CheckMethodAndName(h http.Header, method string, p *mcp.Params) *mcp.Error {
	got, ok, err := Single(h, wire.HeaderMethod)
	switch {
	case err != nil:
		return err
	case !ok:
		return Mismatch("%s is missing", wire.HeaderMethod)
	case got != method:
		return Mismatch("%s is %.100q, the body says %.100q", wire.HeaderMethod, got, method)
	}
	want, named := p.NameFor(method)
	if !named {
		return nil
	}
	got, ok, err = Single(h, wire.HeaderName)
	switch {
	case err != nil:
		return err
	case !ok && want == "":
		return nil // the name is missing altogether, which is no matter of headers
	case !ok:
		return Mismatch("%s is missing", wire.HeaderName)
	}
	// Some clients send names that are not ASCII as they are. That is wrong, but
	// not misleading.
	text, bad := wire.DecodeHeader(got)
	if bad != nil {
		return Mismatch("%s: %v", wire.HeaderName, bad)
	}
	if text != want {
		return Mismatch("%s is %.100q, the body says %.100q", wire.HeaderName, text, want)
	}
	return nil
}

// CheckParams compares the annotated arguments of a tool with their headers.
// Headers that nobody asked for are none of our business.
func CheckParams(h http.Header, arguments []byte, params []wire.HeaderParam) *mcp.Error {
	for _, p := range params {
		name := http.CanonicalHeaderKey(p.Header())
		got, ok, err := Single(h, name)
		if err != nil {
			return err
		}
		encoded, has := p.Value(arguments)
		switch {
		case !has && !ok:
			continue
		case !ok:
			return Mismatch("%s is missing", name)
		case !has:
			return Mismatch("%s is set, the body has no such argument", name)
		case !printable(got):
			return Mismatch("%s has characters that no header may have", name)
		}
		text, bad := wire.DecodeHeader(got)
		if bad != nil {
			return Mismatch("%s: %v", name, bad)
		}
		want, _ := wire.DecodeHeader(encoded) // encoded a moment ago
		if text != want && !(p.Type == "integer" && sameNumber(text, want)) {
			return Mismatch("%s is %.100q, the body says %.100q", name, text, want)
		}
	}
	return nil
}

func printable(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return true
}

func sameNumber(a, b string) bool {
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err1 == nil && err2 == nil && x == y
}
