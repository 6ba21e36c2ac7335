package usher_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/usher-mcp/usher/process"
)

func TestMain(m *testing.M) {
	process.Main() // the shim around a child is this binary too
	goleak.VerifyTestMain(m)
}
