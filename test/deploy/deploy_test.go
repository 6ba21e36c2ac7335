package deploy

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/usher-mcp/usher/test/need"
)

func read(t *testing.T, name ...string) string {
	t.Helper()
	root, err := need.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(append([]string{root}, name...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// at walks into decoded YAML or JSON; nil when there is nothing.
func at(v any, path ...any) any {
	for _, step := range path {
		switch s := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[s]
		case int:
			l, _ := v.([]any)
			if s >= len(l) {
				return nil
			}
			v = l[s]
		}
	}
	return v
}

func documents(t *testing.T, text string) (out []any) {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(text))
	for {
		var v any
		err := d.Decode(&v)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(yaml.FormatError(err, false, true))
		}
		out = append(out, v)
	}
}

func TestKubernetes(t *testing.T) {
	byKind := map[string]any{}
	for _, d := range documents(t, read(t, "deploy", "kubernetes", "usher.yaml")) {
		byKind[at(d, "kind").(string)] = d
	}
	for _, kind := range []string{"Secret", "ConfigMap", "Deployment", "Service", "PodDisruptionBudget"} {
		if at(byKind[kind], "metadata", "name") != "usher" || at(byKind[kind], "apiVersion") == nil {
			t.Errorf("there is no %s that is called usher", kind)
		}
	}
	pod := at(byKind["Deployment"], "spec", "template", "spec")
	labels := at(byKind["Deployment"], "spec", "template", "metadata", "labels", "app.kubernetes.io/name")
	box := at(pod, "containers", 0)
	for what, got := range map[string]any{
		"runAsNonRoot":            at(pod, "securityContext", "runAsNonRoot"),
		"readOnlyRootFilesystem":  at(box, "securityContext", "readOnlyRootFilesystem"),
		"no privilege escalation": at(box, "securityContext", "allowPrivilegeEscalation") == false,
		"drop ALL":                at(box, "securityContext", "capabilities", "drop", 0) == "ALL",
		"Service finds the pods":  at(byKind["Service"], "spec", "selector", "app.kubernetes.io/name") == labels,
		"the budget finds them":   at(byKind["PodDisruptionBudget"], "spec", "selector", "matchLabels", "app.kubernetes.io/name") == labels,
		"readiness":               at(box, "readinessProbe", "httpGet", "path") == "/readyz",
		"liveness":                at(box, "livenessProbe", "httpGet", "path") == "/healthz",
	} {
		if got != true {
			t.Errorf("%s: %v", what, got)
		}
	}
	var cfg any
	if err := json.Unmarshal([]byte(at(byKind["ConfigMap"], "data", "mcp.json").(string)), &cfg); err != nil {
		t.Errorf("mcp.json: %v", err)
	}
}

func TestCompose(t *testing.T) {
	c := documents(t, read(t, "deploy", "compose", "compose.yaml"))[0]
	usher := at(c, "services", "usher")
	if at(usher, "read_only") != true || at(usher, "cap_drop", 0) != "ALL" || at(usher, "deploy", "replicas") != uint64(2) {
		t.Errorf("usher: read_only %v, cap_drop %v, replicas %v", at(usher, "read_only"), at(usher, "cap_drop", 0), at(usher, "deploy", "replicas"))
	}
	root, err := need.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "deploy", "compose")
	file := filepath.Join(dir, at(usher, "build", "context").(string), at(usher, "build", "dockerfile").(string))
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
	var cfg any
	if err := json.Unmarshal([]byte(read(t, "deploy", "compose", "mcp.json")), &cfg); err != nil {
		t.Error(err)
	}
}

func TestGoreleaser(t *testing.T) {
	g := documents(t, read(t, "deploy", "goreleaser.yaml"))[0]
	if at(g, "version") != uint64(2) || at(g, "builds", 0, "main") != "./cmd/usher" || at(g, "builds", 0, "env", 0) != "CGO_ENABLED=0" {
		t.Errorf("builds %v", at(g, "builds", 0))
	}
}

func TestDockerfile(t *testing.T) {
	text := read(t, "deploy", "docker", "Dockerfile")
	last := text[strings.LastIndex(text, "\nFROM "):]
	for _, want := range []string{"FROM scratch", "USER 65532:65532", `ENTRYPOINT ["/usr/local/bin/usher"]`} {
		if !strings.Contains(last, want) {
			t.Errorf("the image lacks %s", want)
		}
	}
	if !strings.Contains(text, "CGO_ENABLED=0") {
		t.Error("the binary is not static")
	}
}

var flagName = regexp.MustCompile(`(?m)(?:^|[\s"])(--[a-z][a-z-]+)`)

// Every flag with which usher is started exists.
func TestFlagsExist(t *testing.T) {
	_, page, _ := strings.Cut(read(t, "docs", "cli.md"), "\n## usher serve\n")
	page, _, _ = strings.Cut(page, "\n## ")
	known := []string{"--config"}
	for _, m := range flagName.FindAllStringSubmatch(page, -1) {
		known = append(known, m[1])
	}
	started := regexp.MustCompile(`(?m)^(CMD .*|ExecStart=.*|\s+- --.*)$`)
	for _, name := range []string{"docker/Dockerfile", "compose/compose.yaml", "kubernetes/usher.yaml", "systemd/usher.service"} {
		lines := started.FindAllString(read(t, "deploy", name), -1)
		if len(lines) == 0 {
			t.Errorf("%s starts nothing", name)
		}
		for _, m := range flagName.FindAllStringSubmatch(strings.Join(lines, "\n"), -1) {
			if !slices.Contains(known, m[1]) {
				t.Errorf("%s: usher serve has no %s", name, m[1])
			}
		}
	}
}

// Every metric of the dashboard is one that usher has.
func TestMetricsExist(t *testing.T) {
	text := read(t, "deploy", "grafana", "usher.json")
	var board any
	if err := json.Unmarshal([]byte(text), &board); err != nil {
		t.Fatal(err)
	}
	exposed := map[string]bool{}
	for _, m := range regexp.MustCompile(`"(usher_[a-z_]+)"`).FindAllStringSubmatch(read(t, "cli", "serve", "metrics.go"), -1) {
		exposed[m[1]] = true
	}
	used := map[string]bool{}
	for _, name := range regexp.MustCompile(`usher_[a-z_]+`).FindAllString(text, -1) {
		used[name] = true
		if !exposed[strings.TrimSuffix(name, "_bucket")] {
			t.Errorf("usher has no metric %s", name)
		}
	}
	for name := range exposed {
		if !used[name] && !used[name+"_bucket"] {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
	if panels, _ := at(board, "panels").([]any); len(panels) < 10 {
		t.Errorf("%d panels", len(panels))
	}
}

// systemd's own check, where there is one; it wants the program to be there.
func TestSystemd(t *testing.T) {
	text := read(t, "deploy", "systemd", "usher.service")
	for _, want := range []string{"NoNewPrivileges=yes", "ProtectSystem=strict", "CapabilityBoundingSet=\n", "DynamicUser=yes"} {
		if !strings.Contains(text, want) {
			t.Errorf("the unit lacks %s", want)
		}
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "usher.service")
	if err := os.WriteFile(unit, []byte(strings.ReplaceAll(text, "ExecStart=/usr/local/bin/usher", "ExecStart="+exe)), 0o644); err != nil {
		t.Fatal(err)
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd-analyze is not here; the unit was only read")
		return
	}
	if out, err := exec.CommandContext(t.Context(), analyze, "verify", unit).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

// The linker ignores a variable that does not exist: each build must name the one that
// holds the version.
func TestVersionIsSetByTheLinker(t *testing.T) {
	for _, file := range [][]string{{"Makefile"}, {"deploy", "docker", "Dockerfile"}, {"deploy", "goreleaser.yaml"}} {
		found := regexp.MustCompile(`-X github\.com/usher-mcp/usher/([\w/]+)\.(\w+)=`).FindAllStringSubmatch(read(t, file...), -1)
		if len(found) == 0 {
			t.Errorf("%s sets no version", filepath.Join(file...))
		}
		for _, m := range found {
			source := read(t, filepath.FromSlash(m[1]), "version.go")
			if !strings.Contains(source, "\nvar "+m[2]+` = ""`+"\n") {
				t.Errorf("%s sets %s, which %s/version.go does not have", filepath.Join(file...), m[2], m[1])
			}
		}
	}
}
