package app

import (
	"net/http"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/console"
	"github.com/usher-mcp/usher/control"
	"github.com/usher-mcp/usher/internal/person"
)

// Any process of the same user reaches the socket, also the shell of an agent: what
// loosens a guard is refused there without a person's proof.
func TestControlNeedsAPerson(t *testing.T) {
	h := opened(t, &config.Config{}, "math")
	c := h.Frontend().Console(&console.Options{Base: "http://127.0.0.1:1"})
	t.Cleanup(c.Close)
	peer, _ := steered(t, h)
	token, err := person.NewToken(h.dirs.Config)
	if err != nil {
		t.Fatal(err)
	}
	loosening := 0
	for _, v := range (&controlServer{h}).verbs() {
		if v.effect != verbNeutral && v.effect != verbLoosens {
			t.Errorf("%s: say whether it loosens a guard", v.pattern)
		}
		if v.effect != verbLoosens {
			continue
		}
		loosening++
		method, path, _ := strings.Cut(v.pattern, " ")
		for name, header := range map[string]http.Header{
			"nothing":                  nil,
			"a claim that is not true": {control.TerminalHeader: {"1"}},
			"another token":            {control.TokenHeader: {token[1:] + "A"}},
		} {
			_, err := peer.DoWith(t.Context(), method, path, header)
			if err == nil || !strings.Contains(err.Error(), person.ErrNeeded.Error()) {
				t.Errorf("%s with %s: %v, want a refusal", v.pattern, name, err)
			}
		}
		resp, err := peer.DoWith(t.Context(), method, path, http.Header{control.TokenHeader: {token}})
		if err != nil {
			t.Errorf("%s with the script token: %v", v.pattern, err)
			continue
		}
		_ = resp.Body.Close()
	}
	if loosening == 0 {
		t.Error("a link to the console is not among what loosens a guard")
	}
}
