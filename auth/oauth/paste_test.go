package oauth

import (
	"errors"
	"strings"
	"testing"
)

func TestParsePaste(t *testing.T) {
	const at = "http://127.0.0.1:4711/callback"
	ok := func(text, code, state string) [4]string { return [4]string{text, code, state, ""} }
	bad := func(text, says string) [4]string { return [4]string{text, "", "", says} }
	for _, tt := range [][4]string{
		ok(at+"?code=abcd&state=st", "abcd", "st"),
		ok("  "+at+"?code=abcd&state=st \n", "abcd", "st"),
		ok(at+"?state=st&iss=https%3A%2F%2Fas&code=a%2Fb%2Bc", "a/b+c", "st"),
		ok(`"`+at+`?code=abcd&state=st"`, "abcd", "st"),
		ok("'"+at+"?code=abcd&state=st'", "abcd", "st"),
		ok("<"+at+"?code=abcd&state=st>", "abcd", "st"),
		ok("`"+at+"?code=abcd&state=st`", "abcd", "st"),
		ok(at+"?code=abcd&amp;state=st", "abcd", "st"),
		ok("http://127.0.0.1:4711/call\nback?code=ab\ncd&state=st", "abcd", "st"),
		ok("http://127.0.0.1:4711/callback?state=st&code=ab\n    cd\n", "abcd", "st"),
		ok(at+"?code=abcd&state=st#_=_", "abcd", "st"),
		ok("127.0.0.1:4711/callback?code=abcd&state=st", "abcd", "st"), ok("localhost:4711/callback?error=x&state=st", "", "st"),
		ok("I got "+at+"?code=abcd&state=st there", "abcd", "st"),
		ok("https://other.example/x "+at+"?code=abcd&state=st", "abcd", "st"),
		ok("?code=abcd&state=st", "abcd", "st"),
		ok("code=abcd&state=st", "abcd", "st"),
		ok("HTTP://127.0.0.1:4711/callback?code=abcd&state=st", "abcd", "st"),
		ok("abcd", "abcd", ""), ok(" abcd-EFGH_123.~ ", "abcd-EFGH_123.~", ""), ok("4/0AbCd", "4/0AbCd", ""), ok("abcd#st", "abcd", "st"),
		ok("4%2F0Ab%2BCd", "4/0Ab+Cd", ""), ok("4/0Ab+Cd==", "4/0Ab+Cd==", ""),
		ok(at+"?error=access_denied&state=st", "", "st"),
		bad("cd&state=st", "a part of an address"), bad("te=st&iss=https%3A%2F%2Fas", "a part of an address"), bad("?state=st", "a part of an address"),
		bad("", "empty"), bad(" \n\t ", "empty"), bad("abc", "neither"), bad("abcd efgh", "several"), bad("ab\ncd", "several"),
		bad(at, "neither a code"), bad(at+"?state=st", "neither a code"), bad(at+"?code=abcd", "no state"),
		bad(at+"?code=abcd&code=efgh&state=st", "code twice"), bad(at+"?code=abcd&state=a&state=b", "state twice"),
		bad("https://as.example/authorize?response_type=code&client_id=x&state=st&code=no", "address of the login page"),
		bad("ftp://127.0.0.1/callback", "another kind"), bad("javascript://x", "another kind"), bad("abcd\x00efgh", "neither"), bad("ünïcödé", "neither"),
		bad(at+"?code=%zz&state=st", "cannot be read"), bad(strings.Repeat("a", maxPaste+1), "too long"),
		bad(at+"?code=abcd&state=st "+at+"?code=efgh&state=st", "several"),
	} {
		got, err := ParsePaste(tt[0])
		if tt[3] != "" {
			if !errors.Is(err, ErrBadPaste) || !strings.Contains(err.Error(), tt[3]) {
				t.Errorf("%.60q: %v, want it to say %q", tt[0], err, tt[3])
			}
			continue
		}
		if err != nil || got.Code.Reveal() != tt[1] || got.State != tt[2] {
			t.Errorf("%q: code %q, state %q, %v", tt[0], got.Code.Reveal(), got.State, err)
		}
	}
}

func FuzzParsePaste(f *testing.F) {
	for _, s := range []string{"http://127.0.0.1/callback?code=a&state=b", "abcd#st", "code=1&state=2", "a b\nc", "&amp;code=", "<http://[::1]:1/?error=x&state=y>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParsePaste(text)
		if err != nil {
			if !errors.Is(err, ErrBadPaste) {
				t.Errorf("error %v", err)
			}
			return
		}
		if got.Code.IsZero() && got.Error == "" {
			t.Errorf("%q has no answer in it", text)
		}
		if got.Address != nil && got.State == "" {
			t.Errorf("%q is an address without a state", text)
		}
	})
}
