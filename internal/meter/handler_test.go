package meter

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

func ask(h http.Handler, target, accept string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodGet, target, nil)
	if accept != "" {
		req.Header.Set("Accept-Encoding", accept)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w
}

func TestHandler(t *testing.T) {
	r := New()
	r.GaugeFunc("a", "h", func() float64 { return 1 })
	r.GaugeFunc("b", "h", func() float64 { return 2 })
	both := "# HELP a h\n# TYPE a gauge\na 1\n# HELP b h\n# TYPE b gauge\nb 2\n"
	for _, tt := range []struct {
		target, accept, want string
		gzip                 bool
	}{
		{"/metrics", "", both, false},
		{"/metrics", "identity", both, false},
		{"/metrics", "gzip", both, true},
		{"/metrics", "deflate, GZIP;q=0.5", both, true},
		{"/metrics", "*", both, true},
		{"/metrics", "gzip;q=0, *;q=0", both, false},
		{"/metrics", "gzip;q=x", both, false},
		{"/metrics?name[]=b&name[]=none", "", "# HELP b h\n# TYPE b gauge\nb 2\n", false},
	} {
		w := ask(r.Handler(), tt.target, tt.accept)
		var body io.Reader = w.Body
		if (w.Header().Get("Content-Encoding") == "gzip") != tt.gzip {
			t.Errorf("%s with %q: %v", tt.target, tt.accept, w.Header())
		}
		if tt.gzip {
			var err error
			if body, err = gzip.NewReader(body); err != nil {
				t.Fatal(err)
			}
		}
		got, err := io.ReadAll(body)
		if err != nil || string(got) != tt.want || w.Code != http.StatusOK {
			t.Errorf("%s with %q: %d %q, %v", tt.target, tt.accept, w.Code, got, err)
		}
		if got := w.Header().Get("Content-Type"); !strings.HasPrefix(got, "text/plain; version=0.0.4; charset=utf-8") {
			t.Errorf("content type %q", got)
		}
	}
}

// More than a few at once are sent away, and later ones are not.
func TestHandlerIsBusy(t *testing.T) {
	r := New()
	in, release := make(chan struct{}, atOnce), make(chan struct{})
	r.GaugeFunc("a", "h", func() float64 {
		in <- struct{}{}
		<-release
		return 1
	})
	h := r.Handler()
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			if w := ask(h, "/metrics", ""); w.Code != http.StatusOK {
				t.Errorf("among the first: %d", w.Code)
			}
		})
	}
	for range atOnce {
		<-in
	}
	if w := ask(h, "/metrics", ""); w.Code != http.StatusServiceUnavailable {
		t.Errorf("one too many: %d", w.Code)
	}
	close(release)
	wg.Wait()
	if w := ask(h, "/metrics", ""); w.Code != http.StatusOK {
		t.Errorf("later: %d", w.Code)
	}
}
