package servercard

import (
	"context"
	"net/http"
	"net/url"
	"testing"

	"github.com/usher-mcp/usher/config"
)

// A name that is not the server's own must be public.
func TestTransport(t *testing.T) {
	plain, public := &http.Transport{}, &http.Transport{}
	r := &reader{Options{Transport: plain, Public: public, PublicOnly: func(context.Context, config.Server) bool { return false }}}
	rt, err := r.transport(t.Context(), config.Server{URL: "https://a.example/mcp"}, mustURL(t, "https://b.example/card"))
	if err != nil || rt != public {
		t.Errorf("another host: %v, %T", err, rt)
	}
	rt, err = r.transport(t.Context(), config.Server{URL: "https://a.example/mcp"}, mustURL(t, "https://a.example:443/card"))
	if err != nil || rt != plain {
		t.Errorf("the same host: %v, %T", err, rt)
	}
}

func mustURL(t *testing.T, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
