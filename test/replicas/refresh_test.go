package replicas

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/test/need"
)

// grace is how long the authorization servers accept a refresh token again whose
// successor may have been lost.
const grace = 10 * time.Second

// Three replicas share logins whose tokens end all the time, half by the clock and
// half by a 401, while replicas are killed: each refresh token is spent once, no
// login is lost, and calls fail only because their replica died. A token that is
// spent twice is right only when a replica was killed between its spending and the
// second time: it may have died before it could write the successor down.
func TestOneRefreshPerExpiry(t *testing.T) {
	servers, expiries, every := 2, 10, time.Second
	if need.Proof() {
		servers, expiries, every = 10, 1000, 3*time.Second
	}
	clock := fake.NewAuth(&fake.AuthOptions{Name: "clock", TTL: 2 * time.Second, RealTTL: 4 * time.Second, Grace: grace})
	refusing := fake.NewAuth(&fake.AuthOptions{Name: "refusing", Grace: grace})
	w := newWorld(t, schema(t))
	var names []string
	for _, as := range []*fake.AuthServer{clock, refusing} {
		_, stop, err := as.Listen()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		for range servers {
			names = append(names, w.protect(as))
		}
	}
	for i, name := range names {
		w.login(name, []*fake.AuthServer{clock, refusing}[i/servers])
	}
	w.start(3)
	a := w.call(6, names, 5*time.Millisecond)
	expired := 0
	kills := w.killWhile(every, func() bool {
		refusing.Expire()
		expired += servers
		return refreshes(clock).distinct+refreshes(refusing).distinct < expiries
	})
	a.end(t, w.lb.wasCut())
	for _, as := range []*fake.AuthServer{clock, refusing} {
		judge(t, as, kills)
	}
	if n := refreshes(refusing).distinct; n > expired {
		t.Errorf("%d refreshes for %d tokens that were refused", n, expired)
	}
	if gap := refreshes(clock).gap; gap < time.Second {
		t.Errorf("a token that lives for two seconds was renewed after %v", gap)
	}
}

// killWhile kills a random replica every so often while more says so, starts it again,
// and returns when each was killed.
func (w *world) killWhile(every time.Duration, more func() bool) (kills []time.Time) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for more() {
		select {
		case <-tick.C:
		case <-w.t.Context().Done():
			return kills
		}
		r := w.all[rand.IntN(len(w.all))]
		kills = append(kills, time.Now())
		r.kill()
		r.run()
		r.await()
	}
	return kills
}

// spent is how the refresh tokens of an authorization server were used.
type spent struct {
	distinct int
	repeated map[string][]time.Time // those that were used more than once
	refused  int
	gap      time.Duration // the shortest between two renewals of a login
}

func refreshes(as *fake.AuthServer) spent {
	uses := map[string][]time.Time{}
	last := map[string]time.Time{}
	s := spent{repeated: map[string][]time.Time{}, gap: time.Hour}
	for _, e := range as.Requests(fake.EventToken, "refresh_token") {
		var form struct {
			Token    string `json:"refresh_token"`
			Resource string `json:"resource"`
		}
		_ = json.Unmarshal(e.Params, &form) // as the fake wrote it
		if len(uses[form.Token]) == 0 && !last[form.Resource].IsZero() {
			s.gap = min(s.gap, e.Time.Sub(last[form.Resource]))
		}
		last[form.Resource] = e.Time
		uses[form.Token] = append(uses[form.Token], e.Time)
		if e.Detail != "ok" {
			s.refused++
		}
	}
	s.distinct = len(uses)
	for token, times := range uses {
		if len(times) > 1 {
			s.repeated[token] = times
		}
	}
	return s
}

// judge checks that every refresh token was spent once, or once more after a kill.
func judge(t *testing.T, as *fake.AuthServer, kills []time.Time) {
	t.Helper()
	s := refreshes(as)
	t.Logf("%s: %d expiries, %d spent again after a kill between commit and write, %d refused; %d kills", as.Issuer(), s.distinct, len(s.repeated), s.refused, len(kills))
	if s.refused > 0 {
		t.Errorf("%d refreshes were refused: a login was lost", s.refused)
	}
	for _, times := range s.repeated {
		killed := false
		for _, k := range kills {
			killed = killed || !k.Before(times[0].Add(-time.Second)) && !k.After(times[len(times)-1])
		}
		if len(times) > 2 || !killed {
			t.Errorf("a refresh token was spent %d times, at %v, and no replica was killed in between", len(times), times)
		}
	}
}
