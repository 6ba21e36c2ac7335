package person

// Peer is a process at the other end of a control socket.
type Peer struct {
	// PID is its process id as the system tells it; 0 where the system does not.
	PID int
	// Terminal is what it says of itself. Where the system can tell, that is compared.
	Terminal bool
	// Token is the script token that it sent, if any.
	Token string
	// Dir is as in [Asker].
	Dir string
}

// Check is [Asker.Check] for a peer.
func (p Peer) Check() error {
	if ValidToken(p.Dir, p.Token) {
		return nil
	}
	if !p.Terminal || p.PID != 0 && (ancestor(p.PID) != "" || !atTerminal(p.PID)) {
		return ErrNeeded
	}
	return nil
}
