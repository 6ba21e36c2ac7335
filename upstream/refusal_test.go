package upstream_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/upstream"
)

// A server that refuses with plain text and HTTP 400 does not know the method, when
// the method is none of the protocol; else something is wrong with it.
func TestRefusedWithoutJSON(t *testing.T) {
	s := fake.New(&fake.Options{Versions: []string{mcp.LatestLegacy}})
	behind := s.Handler()
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		for _, method := range []string{"x/unknown", mcp.MethodToolsCall} {
			if bytes.Contains(body, []byte(method)) {
				http.Error(w, "JSON RPC not handled", http.StatusBadRequest)
				return
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		behind.ServeHTTP(w, r)
	}))
	t.Cleanup(hs.Close)
	t.Cleanup(s.Close)
	c, err := upstream.Dial(t.Context(), &config.Server{Name: "s", Transport: config.TransportHTTP, URL: hs.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_, err = c.Do(t.Context(), mcp.Request{Method: "x/unknown"})
	var said *mcp.Error
	if !errors.As(err, &said) || said.Code != mcp.CodeMethodNotFound {
		t.Errorf("an unknown method: %v", err)
	}
	_, err = c.Do(t.Context(), mcp.Request{Method: mcp.MethodToolsCall, Params: []byte(`{"name":"echo"}`)})
	var status *upstream.StatusError
	if !errors.As(err, &status) || status.Status != http.StatusBadRequest {
		t.Errorf("a known method: %v", err)
	}
}
