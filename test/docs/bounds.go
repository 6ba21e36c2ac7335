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
	{"one message from a server", "config", "DefaultMaxMessageBytes", "", "the rest is discarded and the call fails; `maxMessageBytes`"},
	{"messages in a JSON-RPC batch", "mcp", "maxBatch", "", "the batch is refused"},
	{"connecting", "config", "DefaultConnectTimeout", "", "`timeouts.connect`"},
	{"listing", "config", "DefaultListTimeout", "", "`timeouts.list`"},
	{"a call", "config", "DefaultCallTimeout", "", "`timeouts.call`, `usher call --timeout`"},
	{"failures in a row that open the circuit", "config", "DefaultCircuitThreshold", "", "`supervision.circuitThreshold`"},
	{"how long the circuit first stays open", "config", "DefaultCircuitReset", "", "then one probe; twice as long each time it fails; `supervision.circuitReset`"},
	{"maximum of that", "host/internal/supervise", "MaxPause", "", ""},
	{"restarts", "config", "DefaultMaxRestarts", "", "within the window below; one more ejects the server; `supervision.maxRestarts`"},
	{"window of restarts", "config", "DefaultRestartWindow", "", "`supervision.restartWindow`"},
	{"backoff before a restart", "host", "maxBackoff", "", "exponential, from 0.1 s up to this"},
	{"concurrent stdio servers", "config", "DefaultMaxConnected", "", "`usher.maxConnected`"},
	{"stdio servers started concurrently", "host", "DefaultStartConcurrency", "", ""},
	{"stderr kept per server", "process", "DefaultStderrBytes", "", "the oldest lines are dropped"},
	{"one line of stderr", "process", "maxLine", "", "it is split"},
	{"from closing stdin to SIGTERM", "process", "DefaultGrace", "", ""},
	{"from SIGTERM to SIGKILL, for the whole process tree", "process", "DefaultKill", "", ""},
	{"cached results of one tool", "policy", "maxPerTool", "", "the oldest is dropped"},
	{"all cached results", "policy", "DefaultCache", "", ""},
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
	return table([]string{"what", "limit", "effect, or the setting"}, rows), nil
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
