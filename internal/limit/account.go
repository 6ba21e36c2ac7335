package limit

// Limits on accounts, and what is kept for each of them.
const ()

func accountRows() []Row {
	return nil
}
