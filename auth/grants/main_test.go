package grants

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The hosts of the simulation.
const (
	asHost  = "as.example"
	mcpHost = "mcp.example"
	mcpURL  = "https://mcp.example/mcp"
)
