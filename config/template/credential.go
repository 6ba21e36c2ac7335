package template

import (
	"math"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// secretKeys are the words that make the value beside them a credential.
var secretKeys = lazyRegexp(`(?i)(token|secret|passw(or)?d|passphrase|pwd|api[-_]?key|apikey|auth(orization)?$|^auth|credential|cookie|private[-_]?key|access[-_]?key|signing[-_]?key|encryption[-_]?key|session[-_]?(id|key)|signature|bearer|jwt|(^|[-_])(pat|dsn|key|sig|code)$|[a-z]Key$|connection[-_]?string|database[-_]?url)`)

// harmlessKeys look like secretKeys and are not.
var harmlessKeys = lazyRegexp(`(?i)(token[-_]?(endpoint|url|uri|type|limit|budget|ttl)|max[-_]?tokens|(file|path|dir|name|helper|method|type|url|uri|env|var|store|scheme|host|id)$)`)

// tokenShapes are credentials that can be told by their looks.
var tokenShapes = lazyRegexp(`(?i)^(sk|pk|rk)[-_](live|test|ant|proj|or|[a-z0-9])[-_a-z0-9]{12,}|^gh[oprsu]_\w{16,}|^github_pat_\w{16,}|^glpat-[\w-]{12,}|^xox[a-z]-[\w-]{8,}|^xapp-[\w-]{8,}|^(AKIA|ASIA)[0-9A-Z]{12,}|^AIza[\w-]{20,}|^ya29\.|^eyJ[\w-]{8,}\.|^-----BEGIN|^npm_\w{16,}|^hf_\w{16,}|^lin_(api|oauth)_\w{8,}|^ntn_\w{16,}|^secret_\w{16,}|^sntry[su]_|^whsec_|^dop_v1_|^shp(at|ss|ca)_|^SG\.[\w-]{8,}|^pypi-[\w-]{16,}|^figd_|^sbp_\w{16,}|^tvly-|^fc-[0-9a-f]{16,}|^pat[-_][\w.-]{12,}|^key-[0-9a-f]{16,}|^v\d\.\d\.[\w-]{20,}`)

// IsSecretName reports whether a key, header or variable of this name usually
// holds a credential.
func IsSecretName(name string) bool {
	if strings.EqualFold(name, "authorization") || strings.EqualFold(name, "proxy-authorization") {
		return true
	}
	return secretKeys().MatchString(name) && !harmlessKeys().MatchString(name)
}

// LooksSecret reports whether a literal value is a credential by its looks:
// a known shape, or long and random.
func LooksSecret(value string) bool {
	value = strings.TrimSpace(value)
	if scheme, rest, ok := strings.Cut(value, " "); ok && authScheme(scheme) {
		return strings.TrimSpace(rest) != ""
	}
	return tokenShapes().MatchString(value) || random(value)
}

func authScheme(s string) bool {
	switch strings.ToLower(s) {
	case "bearer", "basic", "token", "apikey", "digest", "dpop":
		return true
	}
	return false
}

// random reports a word of 20 or more characters that no person made up:
// letters and digits mixed with more entropy than names and paths have.
func random(s string) bool {
	if len(s) < 20 || len(s) > 4096 || strings.ContainsAny(s, " /\\:@,;{}$") {
		return false
	}
	var lower, upper, digit bool
	counts := map[rune]int{}
	changes, last := 0, 0
	for _, r := range s {
		kind := 0
		switch {
		case r >= 'a' && r <= 'z':
			lower, kind = true, 1
		case r >= 'A' && r <= 'Z':
			upper, kind = true, 2
		case r >= '0' && r <= '9':
			digit, kind = true, 3
		}
		if last != 0 && kind != 0 && kind != last {
			changes++
		}
		last = kind
		counts[r]++
	}
	if !digit || !lower && !upper {
		return false
	}
	n := utf8.RuneCountInString(s)
	return entropy(counts, n) > 3 && changes*6 >= n
}

// entropy is Shannon's, in bits per character.
func entropy(counts map[rune]int, n int) float64 {
	var h float64
	for _, c := range counts {
		p := float64(c) / float64(n)
		h -= p * math.Log2(p)
	}
	return h
}

// pattern compiles an expression when it is first used: compiling all of them would be
// a good part of the time that a short command takes.
func lazyRegexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
