package usher

import (
	"context"
	"log/slog"
	"net/http"

	"go.opentelemetry.io/otel/trace"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/keys"
)

// Options configure [Open]. The zero value opens what the usher command would.
type Options struct {
	// Config is a loaded configuration. Nil: Open loads the files that Load names.
	Config *config.Config
	// Load says where the configuration files and the state directory are.
	Load config.LoadOptions
	// Store keeps logins, secrets, approvals, pins and the catalog. The program closes
	// it. With a [vault.Memory], sealed or not, nothing is written to disk. Nil: the
	// store that the configuration names, by default an encrypted SQLite file in the
	// state directory.
	Store vault.Store
	// Keychain may hold the key of the store. Nil: the keychain of the operating system.
	Keychain keys.Keychain
	// Prompt asks the user for a passphrase or an input.
	Prompt Prompt
	// Principal is the identity that the methods of Host act as. Default "local".
	Principal string
	// Hook is a policy of the program's own, asked for every call after the configured
	// rules. See [Host.SetHook].
	Hook policy.Hook
	// OnCall is called after each use of a tool, prompt or resource, for metrics. It
	// must not block.
	OnCall func(policy.Finished)
	// Lookup adds sources for placeholders. Its Env defaults to the environment.
	Lookup config.Lookup
	// Capabilities is the raw JSON object of what the program can answer when a server
	// asks, such as {"elicitation":{}}; see CallOptions.Answer. Default {}.
	Capabilities []byte
	// ClientName and ClientVersion are sent to servers. Default "usher".
	ClientName, ClientVersion string
	// Log receives warnings. Nil: they are discarded.
	Log *slog.Logger
	// Tracer makes spans of requests from clients and to servers. Nil: no spans.
	Tracer trace.Tracer
	// Executable is the program itself, if its main function calls process.Main first:
	// a supervising copy of it then ends each server with all its children, even when
	// the program is killed. See [Executable].
	Executable string
	// Transport sends all HTTP requests. Nil: a transport of the host's own.
	Transport http.RoundTripper
}

// Prompt asks the user of the program. What needs a function that is nil fails.
type Prompt struct {
	// Passphrase asks for the passphrase of the store.
	Passphrase func(ctx context.Context, q keys.PassphraseQuestion) (vault.Secret, error)
	// Input asks for the value of an ${input:ID} that has none. The answer is kept as a
	// secret.
	Input func(ctx context.Context, in config.Input) (vault.Secret, error)
}

// Ephemeral returns options for a host without files: no configuration is read, no
// servers are configured, and nothing is written to disk. Logins, pins and budgets last
// until [Host.Close].
func Ephemeral() *Options {
	return &Options{Config: &config.Config{Usher: config.DefaultSettings()}, Store: vault.NewMemory()}
}
