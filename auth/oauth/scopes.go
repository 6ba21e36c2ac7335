package oauth

import (
	"fmt"
	"slices"
	"strings"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/limit"
)

// ScopeOfflineAccess asks an OpenID provider for a refresh token.
const ScopeOfflineAccess = "offline_access"

// ChooseScopes picks what to ask for, and says where it came from: configured
// scopes; else those of the challenge; else all the server publishes; else none.
// Configured scopes that begin with "+" add to what would be asked anyway.
// offline_access is added where the authorization server lists it, unless the
// configuration is exact.
func ChooseScopes(o config.OAuth, p *Provider) (scopes []string, from string) {
	exact, extra := splitScopes(o.Scopes)
	switch {
	case len(exact) > 0:
		return UnionScopes(exact, extra), "oauth.scopes"
	case p.Challenge.Scope != "":
		scopes, from = strings.Fields(p.Challenge.Scope), "the server's challenge"
	case p.ResourceMetadata != nil && len(p.ResourceMetadata.ScopesSupported) > 0:
		scopes, from = p.ResourceMetadata.ScopesSupported, "the server's metadata"
	default:
		from = "nothing is known, so the provider's default"
	}
	scopes = UnionScopes(scopes, extra)
	if len(scopes) > 0 && slices.Contains(p.Metadata.ScopesSupported, ScopeOfflineAccess) {
		scopes = UnionScopes(scopes, []string{ScopeOfflineAccess})
	}
	return scopes, from
}

// splitScopes tells scopes that replace the default from those that add to it.
func splitScopes(configured []string) (exact, extra []string) {
	for _, s := range configured {
		if more, ok := strings.CutPrefix(s, "+"); ok {
			extra = append(extra, more)
		} else {
			exact = append(exact, s)
		}
	}
	return exact, extra
}

// UnionScopes joins lists in order, each scope once.
func UnionScopes(lists ...[]string) []string {
	var out []string
	seen := map[string]bool{"": true}
	for _, list := range lists {
		for _, s := range list {
			if !seen[s] {
				seen[s] = true
				out = append(out, s)
			}
		}
	}
	return out
}

// MissingScopes returns what of want is not in have.
func MissingScopes(want, have []string) []string {
	has := make(map[string]bool, len(have))
	for _, s := range have {
		has[s] = true
	}
	return slices.DeleteFunc(slices.Clone(want), func(s string) bool { return has[s] })
}

// CheckScopes refuses more scopes than a login may ask for.
func CheckScopes(scopes []string) error {
	size := 0
	for _, s := range scopes {
		size += len(s) + 1
	}
	if len(scopes) > limit.LoginScopes || size > limit.LoginScopeBytes {
		return fmt.Errorf("%w: the server asks for %d scopes (%d bytes), more than %d (%d bytes); set oauth.scopes to those that are needed",
			ErrTooMany, len(scopes), size, limit.LoginScopes, limit.LoginScopeBytes)
	}
	return nil
}
