package cmdutil

import (
	"os"
	"strings"
	"testing"
)

// The secrets of usher are found by its commands, and not by programs that they start.
func TestSecretsLeaveTheEnvironment(t *testing.T) {
	const canary = "canary-77d1"
	for name, value := range map[string]string{
		"USHER_PASSPHRASE": canary, "USHER_KEY": "env:HELD_MASTER", "HELD_MASTER": canary,
		"USHER_STORE": "${env:HELD_DATABASE}", "HELD_DATABASE": "postgres://u:" + canary + "@h/d",
		"OTEL_EXPORTER_OTLP_HEADERS": "authorization=" + canary, "HELD_LATER": canary, "HELD_OTHER": "stays",
	} {
		t.Setenv(name, value)
	}
	h := holdSecrets()
	h.holdSetting("env:HELD_LATER", "${HOME}/x.db")
	for _, entry := range os.Environ() {
		if strings.Contains(entry, canary) {
			t.Errorf("%s is in the environment of children", strings.Split(entry, "=")[0])
		}
	}
	for _, name := range []string{"USHER_PASSPHRASE", "HELD_MASTER", "HELD_DATABASE", "OTEL_EXPORTER_OTLP_HEADERS", "HELD_LATER"} {
		if value, ok := h.lookup(name); !ok || !strings.Contains(value, canary) {
			t.Errorf("%s is not found", name)
		}
	}
	for _, name := range []string{"HELD_OTHER", "HOME"} {
		if value, ok := os.LookupEnv(name); !ok || value == "" {
			t.Errorf("%s was taken away", name)
		}
		if _, ok := h.lookup(name); !ok {
			t.Errorf("%s is not found", name)
		}
	}
	var none *heldEnv
	none.holdSetting("env:HELD_OTHER", "") // as in an embedding program
	if _, ok := h.lookup("HELD_NONE"); ok {
		t.Error("found what is not set")
	}
}
