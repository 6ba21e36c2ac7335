//go:build !linux

package process

// Spare is a shim that is started before it is known whether there will be a child.
// This system has none.
type Spare struct{}

type guard struct{}

// NewSpare returns nil, which is a Spare that is of no use to anybody.
func NewSpare(string, string) *Spare { return nil }

func (s *Spare) take() (*pipes, *guard) { return nil, nil }

// Close does nothing.
func (s *Spare) Close() {}
