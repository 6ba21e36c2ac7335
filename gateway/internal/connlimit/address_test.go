package connlimit

import (
	"net"
	"testing"
)

func TestAddressOf(t *testing.T) {
	for in, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "2001:db8::1": "2001:db8::/64", "2001:db8::2": "2001:db8::/64",
	} {
		if got := addressOf(&net.TCPAddr{IP: net.ParseIP(in)}); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
	if got := addressOf(&net.UnixAddr{Name: "x"}); got != "" {
		t.Errorf("a socket: %q", got)
	}
}
