package gateway

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// SocketPath is the path of an address of the form unix:PATH.
func SocketPath(addr string) (path string, ok bool) { return strings.CutPrefix(addr, "unix:") }

// CheckListen refuses addresses that others can reach unless they have to say who
// they are. addr is as for net.Listen, or unix:PATH: a socket that only the same user
// can connect to.
func CheckListen(addr string, authenticated bool) error {
	if path, ok := SocketPath(addr); ok {
		if path == "" {
			return errors.New("listen on \"unix:\": the path is missing; write unix:PATH, for example unix:/run/user/1000/usher/mcp.sock")
		}
		return nil
	}
	name, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("listen on %q: %w; write HOST:PORT, for example 127.0.0.1:8080", addr, err)
	}
	if authenticated || name == "localhost" {
		return nil
	}
	if ip, err := netip.ParseAddr(name); err == nil && ip.Unmap().IsLoopback() {
		return nil
	}
	return fmt.Errorf("listen on %q: %w; listen on 127.0.0.1, or set --auth", addr, ErrOpenDoor)
}

// ErrOpenDoor: the address can be reached from outside and nobody would have to say
// who they are.
var ErrOpenDoor = errors.New("others could reach it without authentication")
