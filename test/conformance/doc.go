package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/usher-mcp/usher/test/need"
)

const docHead = `# Conformance

What the official MCP conformance suite says about usher. This page is written by
%s, which runs the suite as it is published on npm
(@modelcontextprotocol/conformance %s), one process per scenario or leg, and holds
each scenario against the number of checks that reference implementations pass, so
that a pass without substance does not count.

"Scored" are the scenarios that the suite demands of a revision; "others" are run
and judged like them, but the suite itself only reports them. "Checks" is how many
single checks passed.

`

const docClient = `## usher as a client

*library* is a program that embeds usher; *gateway* is ` + "`usher serve`" + ` with the suite's
server behind it and a plain MCP client in front. Logins are done in the three forms
that a person or an agent can use: a browser, the address pasted back, and in the
background.

`

const docServer = `## usher as a server

The suite asks ` + "`usher serve`" + `, behind which stands a server with everything the suite
wants. *untouched* is ` + "`/servers/NAME/mcp`" + `, *joined* the endpoint that shows all servers
side by side (with the prefix of the names taken off again on the way), *without
usher* the server itself. *two replicas* are two ushers on one PostgreSQL with a
balancer before them that sends every single request to the other one.

| server | what it is |
| --- | --- |
| stdio | official Go SDK, a child process, both eras |
| stateful | official Go SDK over HTTP with sessions, the older era |
| stateless | official Go SDK over HTTP without sessions |
| dual | official TypeScript SDK, both eras on one URL |
| modern | the same without the older era |
| legacy | the same without the modern era |

`

// writeDoc writes the figures of a run for readers.
func writeDoc(s suite, path string, rows []row) error {
	version, err := suiteVersion()
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, docHead, "`go run ./test/conformance -all -doc docs/conformance.md`", version)
	for _, part := range []struct{ side, head string }{{"client", docClient}, {"server", docServer}} {
		b.WriteString(part.head)
		docTable(&b, part.side, rows)
	}
	docReasons(&b, rows)
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.root, path)
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

func suiteVersion() (string, error) {
	dir, err := need.FindPackage("@modelcontextprotocol/conformance")
	if err != nil {
		return "", err
	}
	data, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil {
		return "", err
	}
	var manifest struct{ Version string }
	err = json.Unmarshal(data, &manifest)
	return manifest.Version, err
}

func docTable(b *strings.Builder, side string, rows []row) {
	b.WriteString("| leg | revision | scored | others | checks |\n| --- | --- | --- | --- | --- |\n")
	for _, r := range rows {
		if r.leg.side != side {
			continue
		}
		scored, others, checks := figures(r.results)
		sum := strconv.Itoa(checks)
		if r.leg.login != "" {
			sum = "–" // each request is one, and how many there are depends on who is faster
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", docName(r.leg), docRevision(r.leg), scored, others, sum)
	}
	b.WriteString("\n")
}

// figures sums a leg up: how many of the scenarios pass that the suite demands, how
// many of the others, and how many single checks.
func figures(results []result) (scored, others string, checks int) {
	var n [2]struct{ passed, all int }
	for _, one := range results {
		i := 1
		if one.scenario.scored {
			i = 0
		}
		n[i].all++
		if one.ok() && !one.known {
			n[i].passed++
		}
		checks += one.passed
	}
	return of(n[0].passed, n[0].all), of(n[1].passed, n[1].all), checks
}

func of(passed, all int) string {
	if all == 0 {
		return "–"
	}
	return fmt.Sprintf("%d/%d", passed, all)
}

func docRevision(l leg) string {
	if l.extensions {
		return "extensions"
	}
	return l.revision
}

// docName is a leg in words.
func docName(l leg) string {
	switch {
	case l.login != "":
		return l.via + ", login by " + l.login
	case l.side == "client":
		return l.via
	case strings.HasSuffix(l.via, "-joined"):
		return strings.TrimSuffix(l.via, "-joined") + ", joined"
	case strings.HasSuffix(l.via, "-direct"):
		return strings.TrimSuffix(l.via, "-direct") + ", without usher"
	case strings.HasSuffix(l.via, "-replicas"):
		return strings.TrimSuffix(l.via, "-replicas") + ", two replicas"
	}
	return l.via + ", untouched"
}

// docReasons says why something did not pass.
func docReasons(b *strings.Builder, rows []row) {
	b.WriteString("## What does not pass, and why\n\n")
	none := true
	for _, r := range rows {
		for _, one := range r.results {
			if one.ok() && !one.known {
				continue
			}
			none = false
			why := append(append([]string{}, one.earlier...), one.problems...)
			text := strings.TrimPrefix(strings.Join(why, "; "), "known: ")
			if !one.scenario.scored {
				text += " (not scored)"
			}
			fmt.Fprintf(b, "- %s, %s: `%s`: %s\n", docName(r.leg), docRevision(r.leg), one.scenario.name, text)
		}
	}
	if none {
		b.WriteString("Everything passes.\n")
	}
}
