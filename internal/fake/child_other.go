//go:build !unix

package fake

import (
	"errors"
	"io"
	"os"
)

func deafTo() []os.Signal { return []os.Signal{os.Interrupt} }

// children refuses: grandchildren that change their session exist on Unix only.
func (s *Server) children(io.Writer, io.Writer) error {
	for _, name := range []string{"fork-child", "setsid-child"} {
		if _, ok := s.sw.get(name); ok {
			return errors.New(name + " works on Unix only")
		}
	}
	return nil
}
