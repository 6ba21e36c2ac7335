package deploy

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// An image is named by digest, or by a variable without a default that pin.sh sets.
var (
	byDigest   = regexp.MustCompile(`^[a-z0-9./_-]+(:[A-Za-z0-9._-]+)?@sha256:[0-9a-f]{64}$`)
	byVariable = regexp.MustCompile(`^\$\{([A-Z]+_IMAGE)(:\?[^}]+)?\}$`)
)

func pinned(image string) bool {
	return image == "scratch" || byDigest.MatchString(image) || byVariable.MatchString(image)
}

func TestFloatingImagesAreRefused(t *testing.T) {
	for image, want := range map[string]bool{
		"usher:latest": false, "postgres": false, "postgres:17-alpine": false, "golang:1.26.8": false,
		"${POSTGRES_IMAGE:-postgres:17}": false, "${GO_IMAGE}": true, "${GO_IMAGE:?run pin.sh}": true, "scratch": true,
		"a/b:1@sha256:" + strings.Repeat("0", 64): true, "a@sha256:12": false,
	} {
		if pinned(image) != want {
			t.Errorf("%s: pinned is %v", image, !want)
		}
	}
}

// No file names an image by a tag that somebody can move.
func TestImagesArePinned(t *testing.T) {
	images := map[string][]string{}
	find := func(name string, pattern string) {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(read(t, "deploy", name), -1) {
			images[name] = append(images[name], m[1])
		}
	}
	find("docker/Dockerfile", `(?m)^FROM (\S+)`)
	find("compose/compose.yaml", `(?m)^\s+image: (.+?)\s*(?:#.*)?$`)
	find("compose/compose.yaml", `(?m)^\s+[A-Z]+_IMAGE: (.+?)\s*(?:#.*)?$`)
	find("kubernetes/usher.yaml", `(?m)^\s+image: (.+?)\s*(?:#.*)?$`)
	script := read(t, "deploy", "pin.sh")
	for name, want := range map[string]int{"docker/Dockerfile": 2, "compose/compose.yaml": 3, "kubernetes/usher.yaml": 1} {
		if len(images[name]) != want {
			t.Errorf("%s: images %q, want %d", name, images[name], want)
		}
		for _, image := range images[name] {
			if !pinned(image) {
				t.Errorf("%s: %s is a tag that can be moved", name, image)
			}
			if m := byVariable.FindStringSubmatch(image); m != nil && !strings.Contains(script, "\npin "+m[1]+" ") {
				t.Errorf("pin.sh does not print %s", m[1])
			}
		}
	}
	if arg := regexp.MustCompile(`(?m)^ARG GO_IMAGE=`).FindString(read(t, "deploy", "docker", "Dockerfile")); arg != "" {
		t.Error("GO_IMAGE has a default, which is a tag")
	}
}

// The master key and the address of the database are files: what is in the environment
// of a container is shown by its engine, and to all its processes.
func TestSecretsAreFiles(t *testing.T) {
	for _, name := range []string{"compose/compose.yaml", "kubernetes/usher.yaml"} {
		text := read(t, "deploy", name)
		for _, found := range regexp.MustCompile(`secretKeyRef|env:[A-Z].*|MASTER_KEY|POSTGRES_PASSWORD:`).FindAllString(text, -1) {
			t.Errorf("%s: a secret is in the environment: %s", name, found)
		}
		if !strings.Contains(text, "file:/run/secrets/") || !strings.Contains(text, "${file:/run/secrets/") {
			t.Errorf("%s does not read its secrets from files", name)
		}
	}
}

// Every package from npm that the tests run has a hash in the lock file, and the
// fixture of the conformance suite is built from modules with sums.
func TestProgramsArePinned(t *testing.T) {
	var lock struct {
		Packages map[string]struct {
			Integrity string
			Link      bool
		}
	}
	if err := json.Unmarshal([]byte(read(t, "test", "npm", "package-lock.json")), &lock); err != nil {
		t.Fatal(err)
	}
	for name, p := range lock.Packages {
		if name != "" && !strings.HasPrefix(p.Integrity, "sha512-") {
			t.Errorf("%s has no hash: %q", name, p.Integrity)
		}
	}
	if len(lock.Packages) < 100 {
		t.Errorf("%d packages", len(lock.Packages))
	}
	var manifest struct{ Dependencies, OptionalDependencies map[string]string }
	if err := json.Unmarshal([]byte(read(t, "test", "npm", "package.json")), &manifest); err != nil {
		t.Fatal(err)
	}
	exact := regexp.MustCompile(`^\d+\.\d+\.\d+(-[a-z0-9.]+)?$`)
	for _, deps := range []map[string]string{manifest.Dependencies, manifest.OptionalDependencies} {
		for name, version := range deps {
			if !exact.MatchString(version) {
				t.Errorf("%s %s is not one version", name, version)
			}
		}
	}
	if sum := read(t, "tools", "fixture", "go.sum"); !strings.Contains(sum, "github.com/modelcontextprotocol/go-sdk v1.8.0 h1:") {
		t.Error("the fixture of the conformance suite has no sum")
	}
	setup := read(t, "scripts", "setup.sh")
	for _, bad := range []string{"go install", "npm install", "@latest", "-mod=mod"} {
		if strings.Contains(setup, bad) {
			t.Errorf("setup.sh: %q takes what no file pins", bad)
		}
	}
	if !strings.Contains(setup, "npm ci") {
		t.Error("setup.sh does not install what the lock file says")
	}
}
