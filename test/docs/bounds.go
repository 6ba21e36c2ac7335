package docs

import (
	"fmt"
	"time"

	"github.com/usher-mcp/usher/internal/limit"
)

// bound is one row of the table of bounds: where the number stands in the code.
type bound struct {
	about, dir, name, unit, after string
}

var bounds = []bound{
	{"one message of a server", "config", "DefaultMaxMessageBytes", "", "the rest of it is thrown away and the call fails; `maxMessageBytes`"},
	{"messages in a JSON-RPC batch", "mcp", "maxBatch", "", "the batch is refused"},
	{"connecting", "config", "DefaultConnectTimeout", "", "`timeouts.connect`"},
	{"listing", "config", "DefaultListTimeout", "", "`timeouts.list`"},
	{"a call", "config", "DefaultCallTimeout", "", "`timeouts.call`, `usher call --timeout`"},
	{"failures in a row that open the circuit", "config", "DefaultCircuitThreshold", "", "`supervision.circuitThreshold`"},
	{"how long the circuit stays open at first", "config", "DefaultCircuitReset", "", "then one probe; twice as long each time it fails; `supervision.circuitReset`"},
	{"how long at most", "host", "maxPause", "", ""},
	{"restarts", "config", "DefaultMaxRestarts", "", "within the window below; one more ejects the server; `supervision.maxRestarts`"},
	{"window of restarts", "config", "DefaultRestartWindow", "", "`supervision.restartWindow`"},
	{"wait before a restart", "host", "maxBackoff", "", "at most; it begins with 0.1 s and doubles"},
	{"programs that run at once", "host", "DefaultMaxConnected", "", "`usher.maxConnected`"},
	{"programs that start at once", "host", "DefaultStartConcurrency", "", ""},
	{"standard error that is kept of a program", "process", "DefaultStderrBytes", "", "the oldest lines go first"},
	{"one line of it", "process", "maxLine", "", "it is cut into pieces"},
	{"from the end of standard input to SIGTERM", "process", "DefaultGrace", "", ""},
	{"from SIGTERM to SIGKILL, for all that descends from it", "process", "DefaultKill", "", ""},
	{"cached results of one tool", "policy", "maxPerTool", "", "the oldest goes first"},
	{"cached results together", "policy", "DefaultCache", "", ""},
	{"one stored record", "vault", "MaxData", "", ""},
	{"a `${cmd:…}` placeholder", "internal/app", "commandTimeout", "", ""},
}

// boundsTable reads the numbers from the code.
func boundsTable(root string) (string, error) {
	read := map[string]sources{}
	var rows [][]string
	for _, b := range bounds {
		src, ok := read[b.dir]
		if !ok {
			var err error
			if src, err = readSources(root, b.dir); err != nil {
				return "", err
			}
			read[b.dir] = src
		}
		value, err := src.constant(b.name)
		if err != nil {
			return "", fmt.Errorf("bounds: %w", err)
		}
		if b.unit != "" {
			value += " " + b.unit
		}
		rows = append(rows, []string{b.about, value, b.after})
	}
	return table([]string{"what", "bound", "then, or how to change it"}, rows), nil
}

// limitsTable shows what untrusted parties can make grow, and how far.
func limitsTable() (string, error) {
	var rows [][]string
	for _, r := range limit.Table() {
		value := fmt.Sprint(r.Value)
		switch v := r.Value.(type) {
		case time.Duration:
			value = shortDuration(v)
		case int:
			if r.Unit == "bytes" {
				value = size(int64(v))
			}
		default:
			return "", fmt.Errorf("limit.%s has the type %T", r.Name, r.Value)
		}
		rows = append(rows, []string{r.Who, r.What, value, r.Then, "`" + r.Test + "`"})
	}
	return table([]string{"who", "what", "limit", "then", "test"}, rows), nil
}
