package grants

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// simLife is the life of the model's access tokens.
const simLife = 5 * time.Minute

// simGrace is how long a model server that is lenient accepts the previous refresh
// token once more.
const simGrace = 10 * time.Second

// simServer is a model of an authorization server and of the resource it protects,
// reduced to what matters for renewing: which refresh token is good, and what comes
// of one that is used twice.
type simServer struct {
	rotate bool // every refresh replaces the refresh token
	revoke bool // using a replaced one ends the login
	grace  bool // the previous one is accepted once more for simGrace

	issued  int
	refresh map[string]*simCommit // by the refresh token it brought
	access  map[string]*simAccess
}

// simFamily is one login and all that came of it.
type simFamily struct {
	dead    bool
	current *simCommit
	// excuse is what happened to the login that no client can mend, "" if nothing.
	excuse string
}

// simCommit is one issue of tokens by the server.
type simCommit struct {
	family  *simFamily
	access  string
	refresh string
	from    *simCommit // what was spent for it; nil for a login
	by      *simProc
	at      time.Time
	spent   time.Time // when it was replaced; zero: it is current
	again   bool      // its predecessor had been used before
	lost    bool      // the answer did not arrive
	kept    bool      // it is in the store
}

type simAccess struct {
	until  time.Time
	issued time.Time
	kept   bool // it is, or was, in the store
}

func newSimServer(sc scenario) *simServer {
	return &simServer{rotate: sc.rotate, revoke: sc.revoke, grace: sc.grace, refresh: map[string]*simCommit{}, access: map[string]*simAccess{}}
}

// issue makes new tokens.
func (s *simServer) issue(f *simFamily, from *simCommit, by *simProc) *simCommit {
	s.issued++
	c := &simCommit{family: f, access: fmt.Sprintf("at-%d", s.issued), refresh: fmt.Sprintf("rt-%d", s.issued), from: from, by: by, at: time.Now()}
	if from != nil && !s.rotate {
		c.refresh = from.refresh
	}
	if from != nil && s.rotate {
		c.again = !from.spent.IsZero()
		from.spent = c.at
	}
	f.current = c
	s.refresh[c.refresh] = c
	s.access[c.access] = &simAccess{until: c.at.Add(simLife), issued: c.at}
	return c
}

// login is a person's consent: a new family.
func (s *simServer) login() *simCommit { return s.issue(&simFamily{}, nil, nil) }

// good reports whether the resource accepts a token now.
func (s *simServer) good(access string) bool {
	a := s.access[access]
	return a != nil && time.Now().Before(a.until)
}

// acceptable reports whether the server would take a refresh token now.
func (s *simServer) acceptable(refresh string) bool {
	c := s.refresh[refresh]
	return c != nil && !c.family.dead && (c.spent.IsZero() || s.lenient(c))
}

// lenient reports whether a replaced token still falls under the grace: it was
// replaced by what is current now, a moment ago, for the first time.
func (s *simServer) lenient(c *simCommit) bool {
	cur := c.family.current
	return s.grace && cur.from == c && !cur.again && time.Since(cur.at) <= simGrace
}

// spend is a refresh request. Nil means invalid_grant.
func (s *simServer) spend(refresh string, by *simProc) *simCommit {
	c := s.refresh[refresh]
	if c == nil {
		return nil
	}
	if !s.acceptable(refresh) {
		c.family.dead = c.family.dead || s.revoke
		return nil
	}
	return s.issue(c.family, c, by)
}

// invalidate makes the resource refuse an access token from now on.
func (s *simServer) invalidate(access string) { s.access[access].until = time.Now() }

// answer is the HTTP answer to a spend.
func (s *simServer) answer(req *http.Request, c *simCommit) *http.Response {
	if c == nil {
		return simResponse(req, http.StatusBadRequest, `{"error":"invalid_grant"}`)
	}
	body := `{"access_token":"` + c.access + `","token_type":"Bearer","expires_in":` + strconv.Itoa(int(simLife/time.Second))
	if s.rotate {
		body += `,"refresh_token":"` + c.refresh + `"`
	}
	return simResponse(req, http.StatusOK, body+"}")
}

func simResponse(req *http.Request, status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Request: req, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader([]byte(body))), ContentLength: int64(len(body)),
	}
}

// spentToken reads the refresh token out of a request.
func spentToken(req *http.Request) (string, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return "", err
	}
	form, err := url.ParseQuery(string(body))
	return form.Get("refresh_token"), err
}
