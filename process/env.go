package process

import (
	"maps"
	"runtime"
	"slices"
	"strings"
)

// SafeEnv returns the environment for a child: the few variables of base that a
// program needs to run at all, plus extra, which wins. It is sorted and has one
// entry per name.
//
// From base it takes what the official TypeScript SDK takes (HOME, LOGNAME, PATH,
// SHELL, TERM, USER; on Windows the profile and system directories) and what
// node, npx and uvx need besides: language and time zone (LANG, LANGUAGE, LC_*,
// TZ), temporary and XDG base directories, certificate files (SSL_CERT_FILE,
// SSL_CERT_DIR, NODE_EXTRA_CA_CERTS, REQUESTS_CA_BUNDLE) and the proxy variables,
// these only when they hold no password. Everything else, tokens and SSH
// sockets included, has to be declared in extra. Values that are exported shell
// functions are dropped.
//
// USHER_CHILD=1 is always added: an usher command that a child runs is refused what
// only a person may change.
func SafeEnv(base []string, extra map[string]string) []string {
	return safeEnv(base, extra, runtime.GOOS == "windows")
}

func safeEnv(base []string, extra map[string]string, windows bool) []string {
	key := func(name string) string { return name }
	if windows {
		key = strings.ToUpper // names differ only by case there: Path is PATH
	}
	kept := make(map[string]string)
	for _, entry := range base {
		name, value, ok := strings.Cut(entry, "=")
		if ok && inherited(key(name), value, windows) {
			kept[key(name)] = entry
		}
	}
	for name, value := range extra {
		kept[key(name)] = name + "=" + value
	}
	kept[markerName] = markerName + "=1"
	env := make([]string, 0, len(kept))
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		env = append(env, kept[name])
	}
	return env
}

func inherited(name, value string, windows bool) bool {
	if strings.HasPrefix(value, "()") {
		return false
	}
	switch name {
	case "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy":
		return !strings.Contains(value, "@")
	case "NO_PROXY", "no_proxy",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
		"PATH", "TZ", "LANG", "LANGUAGE", "TMPDIR", "TMP", "TEMP":
		return true
	}
	if strings.HasPrefix(name, "LC_") {
		return true
	}
	if windows {
		return inheritedOnWindows(name)
	}
	switch name {
	case "HOME", "LOGNAME", "SHELL", "TERM", "USER",
		"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR":
		return true
	}
	return false
}

func inheritedOnWindows(name string) bool {
	switch name {
	case "APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "NUMBER_OF_PROCESSORS", "OS",
		"PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)",
		"SYSTEMDRIVE", "SYSTEMROOT", "USERNAME", "USERPROFILE", "WINDIR":
		return true
	}
	return false
}

// variable returns the value of name as the child would see it: of several
// entries the last counts.
func variable(env []string, name string) string {
	fold := runtime.GOOS == "windows"
	for _, entry := range slices.Backward(env) {
		n, value, ok := strings.Cut(entry, "=")
		if ok && (n == name || fold && strings.EqualFold(n, name)) {
			return value
		}
	}
	return ""
}
