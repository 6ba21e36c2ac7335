package grants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/vault"
)

// Bounds of asking for more permission.
const (
	// maxStepUps is how many logins may answer the same operation's call for more,
	// so that with the first login a person sees at most three consent pages.
	maxStepUps = 2
	stepMemory = 24 * time.Hour
)

// StepUp remembers what a server wanted beyond what it was given, of kind
// vault.KindStep.
type StepUp struct {
	// Open: the next login answers it, asking for Scopes on account of Operation.
	Open      bool             `json:"open,omitempty"`
	Scopes    []string         `json:"scopes,omitempty"`
	Operation string           `json:"operation,omitempty"`
	Tries     map[string]Tried `json:"tries,omitempty"`

	version int64
}

// Tried counts the logins that answered an operation's request for more permission.
type Tried struct {
	Count int       `json:"count"`
	Last  time.Time `json:"last"`
}

func stepKey(a Account) vault.Key {
	k := a.Key(vault.KindStep)
	k.Name = "step-up " + k.Name
	return k
}

// StepUps remembers what servers want beyond what they were given.
type StepUps struct{ env *Env }

// Load returns what is remembered of the account; never nil without an error.
func (su *StepUps) Load(ctx context.Context, a Account) (*StepUp, error) {
	rec, err := su.env.Store.Get(ctx, stepKey(a))
	s := &StepUp{}
	if errors.Is(err, vault.ErrNotFound) || errors.Is(err, vault.ErrCorrupt) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for what %s asked for: %w", a, err)
	}
	_ = json.Unmarshal(rec.Data, s) // nonsense counts as nothing
	s.version = rec.Version
	for op, t := range s.Tries {
		if time.Since(t.Last) > stepMemory {
			delete(s.Tries, op)
		}
	}
	return s, nil
}

// save keeps s. Losing a race does no harm: the other process remembers about the
// same.
func (su *StepUps) save(ctx context.Context, a Account, s *StepUp) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	rec, err := su.env.Store.Put(ctx, stepKey(a), data, s.version)
	if errors.Is(err, vault.ErrConflict) {
		return nil
	}
	if err == nil {
		s.version = rec.Version
	}
	return err
}

// request takes in that a token was too narrow and says what comes next: a login
// that asks for the union of what was asked before and what is wanted now, or the
// end of asking.
func (su *StepUps) request(ctx context.Context, a Account, g *Grant, c oauth.Challenge) error {
	s, err := su.Load(ctx, a)
	if err != nil {
		return err
	}
	op := c.Operation
	if op == "" && g != nil {
		op = su.env.tokens.operation(g.Access.Secret)
	}
	var before []string
	resource := ""
	if g != nil {
		before, resource = oauth.UnionScopes(g.Requested, g.Scopes), g.Resource
		if g.Resource == "" {
			resource = g.ServerURL
		}
	}
	wanted := strings.Fields(c.Scope)
	key := RecordName(resource + " " + op)
	if s.Tries[key].Count >= maxStepUps {
		return fmt.Errorf("%s: %w: it wants %s for %s although %d logins asked for more; ask its operator which permission is needed",
			a, ErrStepUp, orNothing(oauth.Clean(c.Scope, 200)), orNothing(oauth.Clean(op, 100)), s.Tries[key].Count+1)
	}
	s.Open, s.Operation, s.Scopes = true, key, oauth.UnionScopes(before, wanted)
	if err := oauth.CheckScopes(s.Scopes); err != nil {
		return fmt.Errorf("%s: %w: %w", a, ErrStepUp, err)
	}
	if err := su.save(ctx, a, s); err != nil {
		return fmt.Errorf("remember what %s asked for: %w", a, err)
	}
	need := needsLogin(a, "the server wants more permission (%s)", orNothing(oauth.Clean(strings.Join(oauth.MissingScopes(wanted, before), " "), 200)))
	need.Scopes = s.Scopes
	return need
}

func orNothing(s string) string {
	if s == "" {
		return "it does not say what"
	}
	return s
}

// Count takes in that a login which answers a step-up begins.
func (su *StepUps) Count(ctx context.Context, a Account, s *StepUp) error {
	if !s.Open {
		return nil
	}
	if s.Tries == nil {
		s.Tries = map[string]Tried{}
	}
	s.Tries[s.Operation] = Tried{Count: s.Tries[s.Operation].Count + 1, Last: time.Now()}
	for len(s.Tries) > limit.StepUps {
		s.forgetOldest()
	}
	if err := su.save(ctx, a, s); err != nil {
		return fmt.Errorf("count the logins that %s asked for: %w", a, err)
	}
	return nil
}

// forgetOldest forgets the operation that was tried the longest ago.
func (s *StepUp) forgetOldest() {
	oldest := ""
	for op, t := range s.Tries {
		if oldest == "" || t.Last.Before(s.Tries[oldest].Last) {
			oldest = op
		}
	}
	delete(s.Tries, oldest)
}

// close takes in that a login was finished. The tries stay: if it did not help,
// the next refusal must find them.
func (su *StepUps) close(ctx context.Context, a Account) {
	s, err := su.Load(ctx, a)
	if err != nil || !s.Open {
		return
	}
	s.Open, s.Scopes = false, nil
	if err := su.save(ctx, a, s); err != nil {
		su.env.Log.Warn("a finished request for more permission is still remembered", "account", a.String(), "error", err)
	}
}
