package wire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/usher-mcp/usher/internal/limit"
)

func TestParseChallenges(t *testing.T) {
	type c = Challenge
	p := func(kv ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = kv[i+1]
		}
		return m
	}
	for _, tt := range []struct {
		name string
		in   []string
		want []c
	}{
		{"nothing", nil, nil},
		{"bare scheme", []string{"Bearer"}, []c{{"bearer", p()}}},
		{"params", []string{`Bearer realm="a, b", resource_metadata="https://x/y?z=1", scope=read`}, []c{{"bearer", p("realm", "a, b", "resource_metadata", "https://x/y?z=1", "scope", "read")}}},
		{"names in any case", []string{`BEARER Scope="a b"`}, []c{{"bearer", p("scope", "a b")}}},
		{"escapes", []string{`Bearer error_description="say \"hi\" \\"`}, []c{{"bearer", p("error_description", `say "hi" \`)}}},
		{"two in one header", []string{`Basic realm="x", Bearer error="invalid_token"`}, []c{{"basic", p("realm", "x")}, {"bearer", p("error", "invalid_token")}}},
		{"two headers", []string{"DPoP algs=\"ES256\"", "Bearer"}, []c{{"dpop", p("algs", "ES256")}, {"bearer", p()}}},
		{"token68", []string{"Negotiate abc==, Bearer a=b"}, []c{{"negotiate", p()}, {"bearer", p("a", "b")}}},
		{"spaces around =", []string{`Bearer scope = "a"`}, []c{{"bearer", p("scope", "a")}}},
		{"unterminated", []string{`Bearer scope="a`}, []c{{"bearer", p("scope", "a")}}},
		{"noise", []string{`,,, = "`}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, ParseChallenges(tt.in)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// A header full of schemes does not become as many challenges, nor a challenge with as
// many params.
func TestChallengesAreLimited(t *testing.T) {
	many := strings.Repeat("Bearer a=b, ", 1000)
	if n := len(ParseChallenges([]string{many, many})); n != limit.Challenges {
		t.Errorf("%d challenges, want %d", n, limit.Challenges)
	}
	var params strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&params, "p%d=x, ", i)
	}
	got := ParseChallenges([]string{"Bearer " + params.String() + "scope=late"})
	if n := len(got[0].Params); n != limit.ChallengeParams {
		t.Errorf("%d params, want %d", n, limit.ChallengeParams)
	}
}

// Where the official SDK reads a header it reads the same.
func TestChallengesAsTheSDK(t *testing.T) {
	for _, header := range []string{
		`Bearer`, `Bearer realm="a, b", scope="read write"`, `DPoP algs="ES256", error="use_dpop_nonce"`,
		`Basic realm="x", Bearer error="invalid_token", resource_metadata="https://x/.well-known/oauth-protected-resource?a=b"`,
		`bearer Scope=read , Error="insufficient_scope"`,
	} {
		want, err := oauthex.ParseWWWAuthenticate([]string{header})
		if err != nil {
			t.Fatal(err)
		}
		got := ParseChallenges([]string{header})
		for i, c := range want {
			if c.Params == nil {
				c.Params = map[string]string{}
			}
			if i >= len(got) || cmp.Diff(Challenge{strings.ToLower(c.Scheme), c.Params}, got[i]) != "" {
				t.Errorf("%s: %v, the SDK reads %v", header, got, want)
			}
		}
	}
}

func FuzzParseChallenges(f *testing.F) {
	for _, s := range []string{`Bearer a="b", Basic x=y, Negotiate abc==`, `,= "`, `Bearer a=`, `a b c="\`, "\x00=\"\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, c := range ParseChallenges([]string{s}) {
			if c.Scheme == "" || c.Params == nil {
				t.Errorf("%q: %+v", s, c)
			}
		}
	})
}
