package rules

import (
	"slices"
	"strings"
	"testing"
)

// A rule says what the code of one room may import beside the standard library.
type rule struct {
	ours   []string // rooms; "*" is any
	theirs []string // third-party import paths, each with everything below it; "=path" is that one only
}

// everywhere may be imported by any room.
var everywhere = rule{
	ours: []string{"internal/jsonx", "internal/wire", "mcp", "internal/ending", "internal/limit", "internal/address", "internal/lookalike", "internal/pattern", "internal/suggest", "internal/visible", "event", "internal/retry", "internal/task"},
	theirs: []string{
		"golang.org/x/sync",
		"=go.opentelemetry.io/otel", // the API; its SDK lies below the same path
		"go.opentelemetry.io/otel/trace",
		"go.opentelemetry.io/otel/attribute",
		"go.opentelemetry.io/otel/codes",
		"go.opentelemetry.io/otel/propagation",
		"go.opentelemetry.io/otel/metric",
	},
}

// rooms is the import table. Code imports only to the left of itself in
//
//	config → process → upstream → host → policy → surface → gateway, console, cli
//
// with vault and auth beside it, and each heavy dependency has one home.
var rooms = map[string]rule{
	"event":              {},
	"internal/address":   {},
	"internal/ending":    {},
	"internal/jsonx":     {theirs: []string{"github.com/go-json-experiment/json/jsontext"}},
	"internal/limit":     {},
	"internal/lookalike": {},
	"internal/pattern":   {},
	"internal/retry":     {},
	"internal/suggest":   {},
	"internal/visible":   {},
	"internal/wire":      {},
	"mcp":                {},

	"config":         {ours: []string{"config/jsonc", "config/template"}, theirs: []string{"github.com/tailscale/hujson"}},
	"config/clients": {ours: []string{"config", "config/clients/syntax", "config/edit", "config/template"}},
	"config/clients/syntax": {
		ours: []string{
			"config", "config/edit", "config/jsonc",
		},
		theirs: []string{
			"github.com/goccy/go-yaml", "github.com/pelletier/go-toml/v2",
		},
	},
	"config/edit":     {ours: []string{"config", "config/jsonc"}, theirs: []string{"github.com/tailscale/hujson"}},
	"config/jsonc":    {ours: []string{"config/template"}, theirs: []string{"github.com/tailscale/hujson"}},
	"config/template": {},
	"config/watch":    {},

	"control":  {theirs: []string{"golang.org/x/sys"}},
	"process":  {theirs: []string{"golang.org/x/sys"}},
	"upstream": {ours: []string{"config", "process"}},

	"vault":           {theirs: []string{"golang.org/x/sys"}},
	"vault/audit":     {ours: []string{"vault"}},
	"vault/keys":      {ours: []string{"vault"}, theirs: []string{"filippo.io/age", "github.com/zalando/go-keyring"}},
	"vault/sqlstore":  {ours: []string{"vault"}, theirs: []string{"github.com/jackc/pgx/v5", "modernc.org/sqlite"}},
	"vault/vaulttest": {ours: []string{"vault"}, theirs: []string{"github.com/google/go-cmp", "pgregory.net/rapid"}},

	"auth":          {ours: []string{"auth/grants", "auth/loopback", "auth/oauth", "config", "vault"}, theirs: []string{"golang.org/x/oauth2"}},
	"auth/bulk":     {ours: []string{"auth", "auth/oauth", "config", "vault"}},
	"auth/forward":  {ours: []string{"auth", "auth/bulk", "auth/oauth", "vault"}},
	"auth/grants":   {ours: []string{"auth/oauth", "config", "vault"}},
	"auth/loopback": {ours: []string{"auth/oauth"}},
	"auth/oauth":    {ours: []string{"config", "vault"}, theirs: []string{"golang.org/x/oauth2"}},

	"host":                    {ours: []string{"config", "upstream"}, theirs: []string{"github.com/cenkalti/backoff/v5"}},
	"host/internal/deadline":  {},
	"host/internal/lists":     {},
	"host/internal/supervise": {},

	"policy":        {ours: []string{"config", "config/template", "host", "policy/budget", "policy/pins", "vault"}},
	"policy/budget": {ours: []string{"config", "vault"}},
	"policy/pins":   {ours: []string{"config", "vault"}},

	"surface":                 {ours: []string{"policy", "surface/search"}},
	"surface/internal/naming": {},
	"surface/internal/result": {},
	"surface/search":          {},

	"gateway":                    {ours: []string{"gateway/authn", "policy", "surface"}},
	"gateway/authn":              {theirs: []string{"github.com/coreos/go-oidc/v3"}},
	"gateway/authn/authntest":    {},
	"gateway/internal/connlimit": {},
	"gateway/internal/guard":     {},
	"gateway/internal/headers":   {},
	"gateway/internal/http1":     {},
	"gateway/internal/lifetime":  {},
	"gateway/internal/stream":    {ours: []string{"gateway/internal/lifetime"}},
	"gateway/internal/suspend":   {ours: []string{"gateway/internal/lifetime", "gateway/internal/stream"}},

	"console": {ours: []string{"auth", "auth/bulk", "host", "internal/argument", "policy", "policy/budget", "status", "surface", "surface/search"}},

	"internal/advice":     {ours: []string{"auth", "config", "host", "policy", "policy/pins", "vault"}},
	"internal/argument":   {},
	"internal/catalog":    {ours: []string{"host", "vault"}},
	"internal/logins":     {ours: []string{"auth", "auth/bulk", "config", "host", "policy", "upstream", "vault"}},
	"internal/meter":      {theirs: []string{"golang.org/x/sys"}},
	"internal/observe":    {ours: []string{"config", "config/template", "host", "internal/advice", "policy", "policy/pins", "vault", "vault/audit"}},
	"internal/otlp":       {ours: []string{"internal/meter"}, theirs: []string{"go.opentelemetry.io/otel/sdk"}},
	"internal/person":     {},
	"internal/servercard": {ours: []string{"config", "config/template", "host", "policy"}},
	"internal/serverlog":  {ours: []string{"config/edit", "host", "process"}},
	"internal/singleton":  {ours: []string{"config", "vault"}},
	"internal/torture": {
		ours: []string{
			"auth", "auth/oauth", "config", "gateway/authn", "host", "internal/app",
			"internal/fake", "policy", "vault", "vault/keys", "vault/sqlstore",
		},
	},

	"internal/app": {
		ours: []string{
			"auth", "auth/bulk", "config", "config/watch", "console", "control",
			"gateway", "gateway/authn", "host", "internal/advice", "internal/catalog", "internal/logins",
			"internal/observe", "internal/person", "internal/servercard", "internal/serverlog", "internal/singleton", "policy",
			"policy/pins", "process", "status", "surface", "surface/search", "upstream",
			"vault", "vault/audit", "vault/keys", "vault/sqlstore",
		},
	},
	"usher": {
		ours: []string{
			"auth", "auth/bulk", "auth/oauth", "config", "gateway", "host",
			"internal/app", "policy", "policy/pins", "process", "vault", "vault/keys",
		},
	},

	"cli": {ours: []string{"*"}, theirs: []string{"github.com/spf13/cobra", "github.com/spf13/pflag"}},
	"cli/cmdutil": {
		ours: []string{
			"auth", "config", "config/edit", "control", "host", "internal/advice",
			"internal/app", "internal/person", "policy", "process", "status", "vault",
			"vault/keys", "vault/sqlstore",
		},
		theirs: []string{
			"github.com/cli/browser", "github.com/lmittmann/tint", "github.com/spf13/cobra", "golang.org/x/term",
		},
	},
	"cli/demo": {
		ours: []string{
			"auth/bulk", "cli/cmdutil", "cli/inspect", "cli/serve", "config", "console",
			"host", "internal/app", "internal/fake", "status", "vault",
		},
		theirs: []string{
			"github.com/spf13/cobra",
		},
	},
	"cli/inspect": {
		ours: []string{
			"auth", "cli/cmdutil", "config", "host", "internal/app", "policy",
			"policy/pins", "status", "vault", "vault/audit",
		},
		theirs: []string{
			"github.com/spf13/cobra",
		},
	},
	"cli/login": {
		ours: []string{
			"auth", "auth/bulk", "auth/forward", "auth/loopback", "auth/oauth", "cli/cmdutil",
			"config", "console", "internal/app",
		},
		theirs: []string{
			"github.com/spf13/cobra", "golang.org/x/term", "rsc.io/qr",
		},
	},
	"cli/run": {
		ours: []string{
			"cli/cmdutil", "config", "control", "host", "internal/advice", "internal/app",
			"internal/argument", "internal/servercard", "status", "surface/search", "upstream",
		},
		theirs: []string{
			"github.com/spf13/cobra",
		},
	},
	"cli/serve": {
		ours: []string{
			"cli/cmdutil", "config", "console", "control", "gateway", "gateway/authn",
			"host", "internal/app", "internal/logins", "internal/meter", "internal/otlp", "internal/person",
			"policy", "status", "surface",
		},
		theirs: []string{
			"github.com/lmittmann/tint", "github.com/spf13/cobra", "go.opentelemetry.io/otel/sdk",
		},
	},
	"cli/server": {ours: []string{"cli/cmdutil", "config", "config/edit", "config/template", "vault"}, theirs: []string{"github.com/spf13/cobra"}},
	"cli/setup": {
		ours: []string{
			"cli/cmdutil", "cli/login", "config", "config/clients", "config/edit", "config/template",
			"vault",
		},
		theirs: []string{
			"github.com/spf13/cobra",
		},
	},
	"cli/store": {
		ours: []string{
			"cli/cmdutil", "config", "config/template", "gateway/authn", "internal/app", "internal/person",
			"vault", "vault/keys", "vault/sqlstore",
		},
		theirs: []string{
			"github.com/spf13/cobra",
		},
	},
	"cli/torture": {ours: []string{"cli", "cli/cmdutil", "internal/fake", "internal/torture"}, theirs: []string{"github.com/spf13/cobra"}},

	"status":                       {ours: []string{"config", "host", "policy"}},
	"upstream/internal/definition": {},
	"internal/fake":                {theirs: []string{"github.com/modelcontextprotocol/go-sdk", "github.com/google/jsonschema-go"}},
	"cmd/usher":                    {ours: []string{"cli", "process"}},
	"cmd/usher-torture":            {ours: []string{"cli/cmdutil", "cli/torture", "process"}},
	"bench":                        {ours: []string{"*"}, theirs: []string{"github.com/modelcontextprotocol/go-sdk"}},
	"test":                         {ours: []string{"*"}, theirs: []string{"github.com/modelcontextprotocol/go-sdk", "github.com/goccy/go-yaml", "golang.org/x/sys"}},
}

// inTests may be imported by test files of any room.
var inTests = rule{
	ours: []string{"internal/fake", "test/need", "vault/vaulttest", "vault/sqlstore", "vault/keys", "vault/audit", "gateway/authn/authntest"},
	theirs: []string{
		"github.com/google/go-cmp", "go.uber.org/goleak", "pgregory.net/rapid",
		"github.com/rogpeppe/go-internal", "github.com/modelcontextprotocol/go-sdk",
		"github.com/google/jsonschema-go", "github.com/sony/gobreaker/v2",
		"go.opentelemetry.io/otel", "go.opentelemetry.io/proto/otlp", "google.golang.org/protobuf",
		"github.com/prometheus/common", "github.com/prometheus/client_model",
	},
}

// ruleOf finds the row of a room; the folders below test and internal/fake
// share the row of their parent.
func ruleOf(room string) (rule, bool) {
	for _, parent := range []string{"test", "internal/fake", "bench"} {
		if strings.HasPrefix(room, parent+"/") {
			room = parent
		}
	}
	r, ok := rooms[room]
	return r, ok
}

// allows reports whether one import fits the rule.
func (r rule) allows(from, path string) bool {
	if path == module || strings.HasPrefix(path, module+"/") {
		to := roomOf(path)
		return slices.ContainsFunc(r.ours, func(o string) bool {
			// The folders below fake and test belong to it.
			return o == "*" || o == to || strings.HasPrefix(to, o+"/") && (o == "internal/fake" || o == "test")
		}) || strings.HasPrefix(to, from+"/internal/")
	}
	return slices.ContainsFunc(r.theirs, func(p string) bool {
		return path == p || "="+path == p || strings.HasPrefix(path, p+"/")
	})
}

// standard tells the standard library, whose import paths have no dot in the
// first element.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// misplaced returns the imports of p that its row does not allow.
func misplaced(p pkg) []string {
	r, ok := ruleOf(p.room())
	if !ok {
		return []string{"has no row in the import table of test/rules/imports_test.go"}
	}
	var bad []string
	for _, path := range p.Imports {
		if !standard(path) && !r.allows(p.room(), path) && !everywhere.allows(p.room(), path) {
			bad = append(bad, "imports "+path)
		}
	}
	for _, path := range slices.Concat(p.TestImports, p.XTestImports) {
		self := path == p.ImportPath
		if !standard(path) && !self && !r.allows(p.room(), path) && !everywhere.allows(p.room(), path) &&
			!inTests.allows(p.room(), path) && !leftOf(p.room(), roomOf(path)) {
			bad = append(bad, "imports "+path+" in a test")
		}
	}
	return bad
}

// leftOf reports whether a room could reach another through the table: a test
// may use what its room rests on, even when the room itself only sees part.
func leftOf(from, to string) bool {
	seen := map[string]bool{}
	var reach func(room string) bool
	reach = func(room string) bool {
		if room == to {
			return true
		}
		if seen[room] {
			return false
		}
		seen[room] = true
		r, _ := ruleOf(room)
		return slices.ContainsFunc(r.ours, reach)
	}
	return reach(from)
}

func TestImports(t *testing.T) {
	for _, p := range everyPackage(t) {
		for _, finding := range misplaced(p) {
			t.Errorf("%s (%s): %s", p.room(), p.system, finding)
		}
	}
}

// The table itself must not let rooms go round in a circle.
func TestImportTableHasNoCircle(t *testing.T) {
	for room, r := range rooms {
		for _, to := range r.ours {
			if to != "*" && to != room && leftOf(to, room) {
				t.Errorf("%s and %s may import each other", room, to)
			}
		}
	}
}

func TestMisplacedFinds(t *testing.T) {
	tests := []struct {
		name string
		pkg  pkg
		want int
	}{
		{"left", pkg{ImportPath: module + "/host", Imports: []string{"fmt", module + "/upstream", module + "/event"}}, 0},
		{"right", pkg{ImportPath: module + "/upstream", Imports: []string{module + "/host"}}, 1},
		{"past the neighbour", pkg{ImportPath: module + "/surface", Imports: []string{module + "/host"}}, 1},
		{"root from a room", pkg{ImportPath: module + "/gateway", Imports: []string{module}}, 1},
		{"fake in code", pkg{ImportPath: module + "/host", Imports: []string{module + "/internal/fake"}}, 1},
		{"fake in a test", pkg{ImportPath: module + "/host", TestImports: []string{module + "/internal/fake"}}, 0},
		{"what it rests on, in a test", pkg{ImportPath: module + "/surface", TestImports: []string{module + "/host"}}, 0},
		{"right, in a test", pkg{ImportPath: module + "/upstream", XTestImports: []string{module + "/gateway"}}, 1},
		{"third party at home", pkg{ImportPath: module + "/config", Imports: []string{"github.com/tailscale/hujson"}}, 0},
		{"third party abroad", pkg{ImportPath: module + "/host", Imports: []string{"github.com/tailscale/hujson"}}, 1},
		{"otel API", pkg{ImportPath: module + "/host", Imports: []string{"go.opentelemetry.io/otel", "go.opentelemetry.io/otel/trace"}}, 0},
		{"otel SDK", pkg{ImportPath: module + "/host", Imports: []string{"go.opentelemetry.io/otel/sdk/trace"}}, 1},
		{"name that only begins alike", pkg{ImportPath: module + "/config", Imports: []string{"github.com/tailscale/hujson2"}}, 1},
		{"cli may all", pkg{ImportPath: module + "/cli", Imports: []string{module, module + "/gateway", module + "/internal/fake"}}, 0},
		{"no row", pkg{ImportPath: module + "/util"}, 1},
		{"test folders share a row", pkg{ImportPath: module + "/test/conformance/client", Imports: []string{module + "/upstream"}}, 0},
		{"a room's own internals", pkg{ImportPath: module + "/auth", Imports: []string{module + "/auth/internal/pkce"}}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := misplaced(tt.pkg); len(got) != tt.want {
				t.Errorf("findings %q, want %d", got, tt.want)
			}
		})
	}
}
