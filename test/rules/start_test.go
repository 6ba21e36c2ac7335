package rules

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/test/need"
)

// slowStart are packages that prepare themselves before main, for longer than all of
// ours together. Every `usher call` and every guard around a child is a start of the
// program, so what only `usher serve` would need of them is in internal/meter and
// internal/otlp. Tests may use them.
var slowStart = regexp.MustCompile(`^(google\.golang\.org/(grpc|protobuf|genproto)|github\.com/(modelcontextprotocol|prometheus|grpc-ecosystem|golang/protobuf)|` +
	`go\.opentelemetry\.io/proto|go\.opentelemetry\.io/otel/exporters|golang\.org/x/net/trace|encoding/gob|expvar|testing)(/|$)`)

// slow finds such packages in a list.
func slow(list string) []string {
	var found []string
	for path := range strings.FieldsSeq(list) {
		if slowStart.MatchString(path) {
			found = append(found, path)
		}
	}
	return found
}

func TestProgramStartsQuickly(t *testing.T) {
	root, err := need.Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, system := range systems {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/usher")
		cmd.Dir, cmd.Env = root, append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		list, err := cmd.Output()
		if err != nil || !strings.Contains(string(list), module+"/cli") {
			t.Fatalf("go list: %v, %d bytes", err, len(list))
		}
		for _, path := range slow(string(list)) {
			t.Errorf("%s: the program has %s, which makes every start slower (GODEBUG=inittrace=1 usher --version)", system, path)
		}
	}
}

func TestSlowFinds(t *testing.T) {
	if got := slow("fmt expvar encoding/gob google.golang.org/grpc/codes google.golang.org/grpcx go.opentelemetry.io/otel/trace github.com/prometheus/procfs"); len(got) != 4 {
		t.Errorf("found %q", got)
	}
}
