package clients

import (
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/usher-mcp/usher/config/template"
)

// dialect turns a string of a foreign file into one of our templates. What the
// dialect does not know is text, and stays text.
type dialect func(r *reading, s string) string

// literalDialect is for clients that expand nothing.
func literalDialect(_ *reading, s string) string { return template.Escape(s) }

var (
	shellVariable    = pattern(`\$\{([A-Za-z_]\w*)(?::-([^{}]*))?\}|\$env:([A-Za-z_]\w*)`)
	editorVariable   = pattern(`\$\{([A-Za-z/][A-Za-z]*)(?::([^{}]*))?\}`)
	dollarVariable   = pattern(`\$\{([A-Za-z_]\w*)(?::-([^{}]*))?\}|\$([A-Za-z_]\w*)`)
	percentVariable  = pattern(`\$\{([A-Za-z_]\w*)(?::-([^{}]*))?\}|\$([A-Za-z_]\w*)|%([A-Za-z_]\w*)%`)
	opencodeVariable = pattern(`\{(env|file):([^{}]+)\}`)
	continueVariable = pattern(`\$\{\{\s*(?:secrets|inputs)\.([\w.-]+)\s*\}\}`)
	crushVariable    = pattern(`\$\(([^()]*)\)|\$\{([A-Za-z_]\w*)(?::-([^{}]*))?\}|\$([A-Za-z_]\w*)`)
)

// rewrite replaces the matches of a pattern by templates and escapes the rest;
// where f declines, the match is text too.
func rewrite(s string, find func() *regexp.Regexp, f func(g []string) (template string, ok bool)) string {
	var b template.Builder
	last := 0
	for _, at := range find().FindAllStringSubmatchIndex(s, -1) {
		g := make([]string, len(at)/2)
		for i := range g {
			if at[2*i] >= 0 {
				g[i] = s[at[2*i]:at[2*i+1]]
			}
		}
		b.Text(s[last:at[0]])
		if template, ok := f(g); ok {
			b.Raw(template)
		} else {
			b.Text(g[0])
		}
		last = at[1]
	}
	b.Text(s[last:])
	return b.String()
}

func envPlaceholder(name string) string { return "${env:" + name + "}" }

// envDefault keeps the default where one is written, the empty one included.
func envDefault(match, name, def string) string {
	if strings.Contains(match, ":-") {
		return "${env:" + name + ":-" + template.Escape(def) + "}"
	}
	return envPlaceholder(name)
}

// shellDialect: ${VAR}, ${VAR:-default}, $env:VAR.
func shellDialect(_ *reading, s string) string {
	return rewrite(s, shellVariable, func(g []string) (string, bool) {
		if g[3] != "" {
			return envPlaceholder(g[3]), true
		}
		return envDefault(g[0], g[1], g[2]), true
	})
}

// dollarDialect: $VAR and ${VAR}.
func dollarDialect(_ *reading, s string) string {
	return rewrite(s, dollarVariable, func(g []string) (string, bool) {
		if g[3] != "" {
			return envPlaceholder(g[3]), true
		}
		return envDefault(g[0], g[1], g[2]), true
	})
}

// percentDialect is dollarDialect plus %VAR%, as Gemini has it in env.
func percentDialect(_ *reading, s string) string {
	return rewrite(s, percentVariable, func(g []string) (string, bool) {
		if name := g[3] + g[4]; name != "" {
			return envPlaceholder(name), true
		}
		return envDefault(g[0], g[1], g[2]), true
	})
}

// editorDialect: ${env:VAR}, ${input:id}, ${file:path} and the folders.
func editorDialect(r *reading, s string) string {
	return rewrite(s, editorVariable, func(g []string) (string, bool) {
		name, arg := g[1], g[2]
		switch {
		case name == "env" && arg != "":
			return envPlaceholder(arg), true
		case name == "input" && r.client.name == "vscode" && arg != "":
			return "${input:" + arg + "}", true
		case name == "file" && r.client.name == "windsurf" && arg != "":
			return "${file:" + r.absolute(arg) + "}", true
		case name == "userHome":
			return envPlaceholder(r.homeVariable()), true
		case name == "workspaceFolder" || name == "workspaceRoot":
			return template.Escape(r.workspace()), true
		case name == "workspaceFolderBasename":
			return template.Escape(filepath.Base(r.workspace())), true
		case name == "pathSeparator" || name == "/":
			return string(filepath.Separator), true
		}
		r.strange = append(r.strange, g[0])
		return "", false
	})
}

func (r *reading) homeVariable() string {
	if r.sys.GOOS == "windows" {
		return "USERPROFILE"
	}
	return "HOME"
}

// workspace is the folder that an editor would have open.
func (r *reading) workspace() string {
	if r.project != "" {
		return r.project
	}
	return r.sys.Workdir
}

// absolute makes a path from the file independent of where it will stand.
func (r *reading) absolute(path string) string {
	if filepath.IsAbs(path) || strings.HasPrefix(path, "~/") {
		return path
	}
	return filepath.Join(filepath.Dir(r.path), path)
}

// opencodeDialect: {env:VAR} and {file:path}.
func opencodeDialect(r *reading, s string) string {
	return rewrite(s, opencodeVariable, func(g []string) (string, bool) {
		if g[1] == "env" {
			return envPlaceholder(g[2]), true
		}
		return "${file:" + r.absolute(g[2]) + "}", true
	})
}

// continueDialect: ${{ secrets.NAME }}.
func continueDialect(_ *reading, s string) string {
	return rewrite(s, continueVariable, func(g []string) (string, bool) { return "${secret:" + g[1] + "}", true })
}

// crushDialect: $VAR, ${VAR} and $(command).
func crushDialect(_ *reading, s string) string {
	return rewrite(s, crushVariable, func(g []string) (string, bool) {
		switch {
		case strings.HasPrefix(g[0], "$("):
			return "${cmd:" + g[1] + "}", strings.TrimSpace(g[1]) != ""
		case g[4] != "":
			return envPlaceholder(g[4]), true
		}
		return envDefault(g[0], g[2], g[3]), true
	})
}

// pattern compiles an expression when it is first used: compiling all of them would be
// a good part of the time that a short command takes.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
