package control

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// ErrUnknownServer: the peer hosts no server of that name.
var ErrUnknownServer = errors.New("unknown server")

// Refuse answers a request with an error that the asking side will show. unknown
// says that the server's name was the problem.
func Refuse(w http.ResponseWriter, err error, unknown bool) {
	status := http.StatusInternalServerError
	if unknown {
		status = http.StatusNotFound
	}
	http.Error(w, err.Error(), status)
}

func answerError(pid int, resp *http.Response) error {
	words, _ := io.ReadAll(io.LimitReader(resp.Body, 4096)) // what came is enough
	msg := strings.TrimSpace(string(words))
	if resp.StatusCode == http.StatusNotFound {
		return fmt.Errorf("%s (%w)", msg, ErrUnknownServer)
	}
	return fmt.Errorf("usher with pid %d: %s", pid, msg)
}
