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

Results of the official MCP conformance suite for usher. This page is written by
%s, which runs the suite as published on npm
(@modelcontextprotocol/conformance %s), one process per scenario or leg, and compares
each scenario with the number of checks that reference implementations pass, so that an
empty pass does not count.

"Scored" are the scenarios that the suite requires for a protocol version; "others" are run
and judged the same way, but the suite itself only reports them. "Checks" is the number of
single checks that passed.

`

const docClient = `## usher as a client

*library* is a program that embeds usher; *gateway* is ` + "`usher serve`" + ` with the suite's
server behind it and a plain MCP client in front. Logins use the three methods that a user
or an agent can use: a browser, pasting the redirect URL, and asynchronous.

`

const docServer = `## usher as a server

The suite tests ` + "`usher serve`" + ` in front of a server with everything the suite requires.
*unchanged* is ` + "`/servers/NAME/mcp`" + `, *joined* the endpoint that offers the tools of all
servers (with the name prefix removed for the suite), *without usher* the server itself.
*two replicas* are two usher processes on one PostgreSQL behind a load balancer that sends
each request to the other one.

| server | what it is |
| --- | --- |
| stdio | official Go SDK, a child process, both protocol generations |
| stateful | official Go SDK over HTTP with sessions, legacy protocol |
| stateless | official Go SDK over HTTP without sessions |
| dual | official TypeScript SDK, both protocol generations on one URL |
| modern | the same, stateless protocol only |
| legacy | the same, legacy protocol only |

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
	return l.via + ", unchanged"
}

// docReasons says why something did not pass.
func docReasons(b *strings.Builder, rows []row) {
	b.WriteString("## Failures and reasons\n\n")
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
