package cli

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/usher-mcp/usher/internal/fake"
)

// protected serves a fake behind a login and returns its address.
func protected(t *testing.T, as *fake.AuthServer) string {
	t.Helper()
	_, stop, err := as.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	notes := fake.New(&fake.Options{Name: "notes"})
	p := &fake.Protected{}
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		as.Protect(p, notes.Handler()).ServeHTTP(w, r)
	}))
	p.Resource = hs.URL + "/mcp"
	t.Cleanup(func() {
		notes.Close()
		hs.Close()
	})
	return p.Resource
}
