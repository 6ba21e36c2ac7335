package need

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Port is a loopback port that nobody listens on, for a program that is told where to
// listen, or for an address where nobody is. It is none of those that systems give to
// outgoing connections, and none that usher chooses for its login page: such a one may be
// in use by the time it is needed.
func Port() (int, error) {
	for range 100 {
		port := 10000 + rand.IntN(10000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		return port, l.Close()
	}
	return 0, fmt.Errorf("no free port between 10000 and 20000")
}

// Address is [Port] with its host.
func Address() (string, error) {
	port, err := Port()
	return fmt.Sprintf("127.0.0.1:%d", port), err
}
