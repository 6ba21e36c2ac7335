package limit

// Limits on what a client of the gateway can send or hold open.
const ()

func clientRows() []Row {
	return nil
}
