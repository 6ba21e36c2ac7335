package login

import (
	"testing"

	"github.com/usher-mcp/usher/auth"
)

// A paste of an answer that the browser has just brought by itself ends nothing: whoever
// waits hears how the login ends.
func TestMayPasteAgain(t *testing.T) {
	for err, want := range map[error]bool{
		auth.ErrBeingCompleted: true, auth.ErrUnknownState: true, auth.ErrBadPaste: true, auth.ErrUnavailable: true,
		auth.ErrRefused: false, auth.ErrDenied: false,
	} {
		if got := mayPasteAgain(err); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}
