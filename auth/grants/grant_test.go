package grants

import (
	"testing"
	"time"

	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/vault"
)

func TestDue(t *testing.T) {
	start := time.Now()
	m := New(NewEnv(vault.NewMemory(), nil), Hooks{})
	for life, want := range map[time.Duration]time.Duration{
		40 * time.Second: 30 * time.Second,
		10 * time.Minute: 450 * time.Second,
		20 * time.Minute: 15 * time.Minute,
		time.Hour:        55 * time.Minute,
		24 * time.Hour:   24*time.Hour - 5*time.Minute,
	} {
		g := &Grant{Access: oauth.NewStoredSecret("x"), Obtained: start, Expires: start.Add(life)}
		got := m.refresher.due(g).Sub(start)
		if got < want || got > want+(life-want)/10 {
			t.Errorf("a token of %v is due after %v, want %v and at most a tenth of the rest more", life, got, want)
		}
	}
	if d := m.refresher.due(&Grant{Obtained: start}); d.Before(start.Add(100 * 365 * 24 * time.Hour)) {
		t.Errorf("a token of unknown life is due at %v", d)
	}
}

// Of what was read in the meantime the newest stays.
func TestConfirmKeepsTheNewer(t *testing.T) {
	var c grantCache
	a := Account{Server: "srv"}
	old, fresh := &Grant{Version: 1}, &Grant{Version: 2}
	c.put(a, old)
	at := time.Now()
	c.put(a, fresh)
	if got := c.confirm(a, old, at); got != fresh {
		t.Errorf("confirm gave version %d, want the newer one", got.Version)
	}
	later := time.Now().Add(time.Second)
	if got := c.confirm(a, fresh, later); got != fresh {
		t.Errorf("confirm gave version %d", got.Version)
	}
	if got, _ := c.get(a); got.g != fresh || !got.at.Equal(later) {
		t.Errorf("confirmed at %s, want %s", got.at, later)
	}
}
