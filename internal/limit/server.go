package limit

// Limits on what a connected MCP server can send.
const ()

func serverRows() []Row {
	return nil
}
