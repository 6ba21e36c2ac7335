package fake

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
)

// issued is what secrets of an AuthServer look like: nothing else in the world does.
var issued = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(?:at|rt|rat|code|secret|device|jag)-[A-Z2-7]{26}\b`)
})

// Secrets finds the tokens, codes and client secrets of an AuthServer in a text. No
// output, log, page, argument, environment or unsealed file of usher may hold one.
func Secrets(text []byte) [][]byte { return issued().FindAll(text, 16) }

// VerifierBook names the variable of the environment that says in which directory
// every AuthServer writes down the verifiers it was shown. They are usher's own
// secrets, which look like anything else.
const VerifierBook = "USHER_TEST_VERIFIERS"

func writeDown(verifier string) {
	dir := os.Getenv(VerifierBook)
	if dir == "" {
		return
	}
	f, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(os.Getpid())), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return // one fewer is looked for
	}
	_, _ = f.WriteString(verifier + "\n") // as above
	_ = f.Close()
}

// exposed reports whether a secret stands where any user of the machine can read it:
// in the arguments or the environment of this process.
func exposed(args []string) bool {
	for _, text := range append(os.Environ(), args...) {
		if len(Secrets([]byte(text))) > 0 {
			return true
		}
	}
	return false
}
