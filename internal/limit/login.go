package limit

// Limits on logins and authorization servers.
const ()

func loginRows() []Row {
	return nil
}
