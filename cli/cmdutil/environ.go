package cmdutil

import (
	"os"
	"runtime"
	"strings"
	"sync"
)

// heldEnv is the environment with the secrets of usher taken out: commands still find
// them here, but programs that usher starts, such as a browser or ssh, do not inherit
// them. The rest is the environment of the process.
type heldEnv struct {
	mu   sync.RWMutex // guards held
	held map[string]string
}

// holdSecrets takes the variables of the environment that are secrets by their name.
func holdSecrets() *heldEnv {
	h := &heldEnv{held: map[string]string{}}
	h.holdSetting(os.Getenv("USHER_KEY"), os.Getenv("USHER_STORE"))
	h.hold("USHER_PASSPHRASE", "USHER_KEY", "USHER_STORE",
		"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
		"OTEL_EXPORTER_OTLP_METRICS_HEADERS", "OTEL_EXPORTER_OTLP_LOGS_HEADERS")
	return h
}

// holdSetting takes the variables that the settings for the key and the store name:
// key is such as "env:NAME", store such as "${env:NAME}".
func (h *heldEnv) holdSetting(key, store string) {
	if h == nil {
		return
	}
	names := append(envNames(key), envNames(store)...)
	if name, ok := strings.CutPrefix(key, "env:"); ok {
		names = append(names, name)
	}
	for _, name := range names {
		if !harmless(name) {
			h.hold(name)
		}
	}
}

// envNames returns the variables of the placeholders in a text: ${NAME} and ${env:NAME}.
// Of ${file:…} and others it returns words that no variable is called by.
func envNames(text string) (names []string) {
	for {
		_, rest, found := strings.Cut(text, "${")
		if !found {
			return names
		}
		text = rest
		rest = strings.TrimPrefix(rest, "env:")
		if end := strings.IndexAny(rest, ":}"); end > 0 {
			names = append(names, rest[:end])
		}
	}
}

// harmless are variables that programs need and that a path may be made of.
func harmless(name string) bool {
	switch name {
	case "HOME", "USER", "LOGNAME", "PATH", "PWD", "TMPDIR", "USHER_HOME", "HOSTNAME",
		"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR",
		"APPDATA", "LOCALAPPDATA", "USERPROFILE":
		return true
	}
	return false
}

func (h *heldEnv) hold(names ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range names {
		if value, ok := os.LookupEnv(name); ok && os.Unsetenv(name) == nil {
			h.held[envKey(name)] = value
		}
	}
}

func (h *heldEnv) lookup(name string) (string, bool) {
	h.mu.RLock()
	value, ok := h.held[envKey(name)]
	h.mu.RUnlock()
	if ok {
		return value, true
	}
	return os.LookupEnv(name)
}

// envKey is one form for a name: on Windows they differ by case alone.
func envKey(name string) string {
	if runtime.GOOS == "windows" {
		return strings.ToUpper(name)
	}
	return name
}
