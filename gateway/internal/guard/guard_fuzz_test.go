package guard

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// Whatever Host and Origin say, only our own names pass.
func FuzzGuard(f *testing.F) {
	for _, s := range []string{"localhost", "127.0.0.1:80", "[::1]:1", "evil", "localhost.evil", "[::ffff:7f00:1]", "localhost:80@evil"} {
		f.Add(s, "http://"+s)
	}
	g := New(nil, nil)
	f.Fuzz(func(t *testing.T, host, origin string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = host
		r.Header["Origin"] = []string{origin}
		if status, _ := g.Refuses(r); status != 0 {
			return
		}
		name, _ := hostName(strings.ToLower(host))
		if name != "localhost" && !strings.HasPrefix(name, "127.") && !strings.Contains(name, ":") {
			t.Errorf("host %q passes", host)
		}
		if o := strings.ToLower(origin); o != "http://"+strings.ToLower(host) && o != "https://"+strings.ToLower(host) {
			t.Errorf("origin %q passes for host %q", origin, host)
		}
	})
}
