package clients

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/template"
)

// unwrap turns a command that only carries messages to a remote server, such
// as npx mcp-remote URL, into that server. A command line that is not fully
// understood stays a command.
func (e *entry) unwrap() {
	if e.s.Command == "" {
		return
	}
	name, args := program(e.s.Command, e.s.Args)
	w := &wrapped{entry: e, headers: map[string]string{}, transport: config.TransportHTTP, oauth: &config.OAuth{}, usedEnv: map[string]bool{}}
	var err error
	switch name {
	case "mcp-remote":
		err = w.mcpRemote(args)
	case "mcp-proxy":
		err = w.mcpProxy(args)
	case "supergateway":
		err = w.supergateway(args)
	case "docker":
		if strings.HasPrefix(strings.Join(args, " "), "mcp gateway run") {
			e.note("this is Docker's own gateway with servers of its own behind it; usher runs it as one server")
		}
		return
	default:
		return
	}
	switch {
	case err != nil:
		e.note("%s is kept as a command: %v", name, err)
	case w.url != "":
		w.apply(name)
	}
}

// wrapped is a remote server found inside a command line.
type wrapped struct {
	*entry
	url         string
	transport   config.Transport
	headers     map[string]string
	headersFrom string
	oauth       *config.OAuth
	port, host  string
	denied      []string
	dropped     []string // options without a meaning here
	usedEnv     map[string]bool
}

// apply replaces the command by what it stood for.
func (w *wrapped) apply(name string) {
	e := w.entry
	e.note("unwrapped from %s", name)
	env := e.s.Env
	e.s.Transport, e.s.URL = w.transport, w.url
	e.s.HeadersFrom = w.headersFrom
	e.s.Command, e.s.Args, e.s.Env, e.s.Cwd = "", nil, nil, ""
	for k, v := range w.headers {
		e.setHeader(k, v)
	}
	e.s.Tools.Deny = append(e.s.Tools.Deny, w.denied...)
	if w.port != "" && w.oauth.ClientID != "" {
		w.oauth.RedirectURI = "http://" + w.host + ":" + w.port + "/oauth/callback"
	}
	if !emptyOAuth(w.oauth) {
		e.s.OAuth = w.oauth
	}
	for _, k := range sortedKeys(env) {
		if !w.usedEnv[k] {
			e.note("env %s was for %s and is dropped", k, name)
		}
	}
	if len(w.dropped) > 0 {
		e.note("options of %s without a counterpart are dropped: %s", name, strings.Join(w.dropped, ", "))
	}
}

func emptyOAuth(o *config.OAuth) bool {
	return o.ClientID == "" && o.ClientSecret == "" && o.ClientMetadataURL == "" && o.Resource == "" &&
		o.Grant == "" && o.TokenEndpoint == "" && len(o.Scopes) == 0
}

// mcpRemote reads: URL [port] [--header "K: V"]… and further options.
func (w *wrapped) mcpRemote(args []string) error {
	w.host = "localhost"
	var plain []string
	for i := 0; i < len(args); i++ {
		flag, value, assigned := strings.Cut(args[i], "=")
		if !strings.HasPrefix(flag, "--") {
			plain = append(plain, args[i])
			continue
		}
		switch flag {
		case "--allow-http", "--debug", "--silent", "--enable-proxy":
			w.dropped = append(w.dropped, flag)
			continue
		case "--device-code":
			w.oauth.Grant = config.GrantDeviceCode
			continue
		}
		if !assigned {
			if i++; i >= len(args) {
				return fmt.Errorf("%s lacks its value", flag)
			}
			value = args[i]
		}
		if err := w.mcpRemoteOption(flag, value); err != nil {
			return err
		}
	}
	if len(plain) == 0 || len(plain) > 2 {
		return fmt.Errorf("expected an address and perhaps a port, found %d words", len(plain))
	}
	if len(plain) == 2 {
		if w.port = plain[1]; strings.Trim(w.port, "0123456789") != "" {
			return fmt.Errorf("the port is not a number")
		}
	}
	return w.setURL(plain[0])
}

func (w *wrapped) mcpRemoteOption(flag, value string) error {
	switch flag {
	case "--header":
		return w.addHeader(value)
	case "--header-file":
		w.headersFrom = "${file:" + w.absolute(value) + "}"
	case "--transport":
		if strings.HasPrefix(value, "sse") {
			w.transport = config.TransportSSE
		}
	case "--resource":
		w.oauth.Resource = value
	case "--client-metadata-url":
		w.oauth.ClientMetadataURL = value
	case "--static-oauth-client-info":
		return w.clientInfo(value)
	case "--static-oauth-client-metadata":
		return w.clientMetadata(value)
	case "--ignore-tool":
		w.denied = append(w.denied, value)
	case "--host":
		w.host = value
	case "--auth-timeout":
		w.dropped = append(w.dropped, flag)
	default:
		return fmt.Errorf("the option %s is not known", config.Visible(flag))
	}
	return nil
}

func (w *wrapped) clientInfo(value string) error {
	if strings.HasPrefix(value, "@") {
		return fmt.Errorf("its client is in the file %s; copy client_id and client_secret into oauth", config.Visible(value[1:]))
	}
	var info struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	if json.Unmarshal([]byte(value), &info) != nil || info.ID == "" {
		return fmt.Errorf("--static-oauth-client-info is not JSON with a client_id")
	}
	w.oauth.ClientID, w.oauth.ClientSecret = w.variables(info.ID), w.variables(info.Secret)
	return nil
}

func (w *wrapped) clientMetadata(value string) error {
	if strings.HasPrefix(value, "@") {
		w.dropped = append(w.dropped, "--static-oauth-client-metadata")
		return nil
	}
	var meta struct {
		Scope string `json:"scope"`
	}
	if json.Unmarshal([]byte(value), &meta) != nil {
		return fmt.Errorf("--static-oauth-client-metadata is not JSON")
	}
	w.oauth.Scopes = strings.Fields(meta.Scope)
	return nil
}

// mcpProxy reads: [--transport T] [--headers K V]… URL. Without an address it
// works the other way round and is left alone.
func (w *wrapped) mcpProxy(args []string) error {
	w.transport = config.TransportSSE
	var plain []string
	for i := 0; i < len(args); i++ {
		next := func() string {
			if i++; i < len(args) {
				return args[i]
			}
			return ""
		}
		switch flag, value, assigned := strings.Cut(args[i], "="); {
		case !strings.HasPrefix(flag, "-"):
			plain = append(plain, args[i])
		case flag == "--headers" || flag == "-H":
			name := next()
			w.headers[name] = w.variables(next())
		case flag == "--transport" || flag == "--client-id" || flag == "--client-secret" || flag == "--token-url":
			if !assigned {
				value = next()
			}
			w.mcpProxyOption(flag, value)
		case flag == "--debug" || flag == "--no-verify-ssl" || flag == "--verify-ssl":
			w.dropped = append(w.dropped, flag)
		default:
			return fmt.Errorf("the option %s is not known", config.Visible(flag))
		}
	}
	if len(plain) != 1 || !isAddress(plain[0]) {
		return nil // it serves a command to others
	}
	if token, ok := w.entry.s.Env["API_ACCESS_TOKEN"]; ok {
		w.headers["Authorization"] = "Bearer " + token
		w.usedEnv["API_ACCESS_TOKEN"] = true
	}
	return w.setURL(plain[0])
}

func (w *wrapped) mcpProxyOption(flag, value string) {
	switch flag {
	case "--transport":
		if t, ok := config.ParseTransport(value); ok {
			w.transport = t
		}
	case "--client-id":
		w.oauth.ClientID, w.oauth.Grant = w.variables(value), config.GrantClientCredentials
	case "--client-secret":
		w.oauth.ClientSecret = w.variables(value)
	case "--token-url":
		w.oauth.TokenEndpoint = value
	}
}

// supergateway reads: --sse URL or --streamableHttp URL. With --stdio it works
// the other way round and is left alone.
func (w *wrapped) supergateway(args []string) error {
	for i := 0; i < len(args); i++ {
		flag, value, assigned := strings.Cut(args[i], "=")
		if !assigned {
			if i++; i < len(args) {
				value = args[i]
			}
		}
		switch flag {
		case "--stdio":
			w.url = ""
			return nil
		case "--sse", "--streamableHttp":
			w.transport = config.TransportHTTP
			if flag == "--sse" {
				w.transport = config.TransportSSE
			}
			if err := w.setURL(value); err != nil {
				return err
			}
		case "--header":
			if err := w.addHeader(value); err != nil {
				return err
			}
		case "--oauth2Bearer":
			w.headers["Authorization"] = "Bearer " + w.variables(value)
		case "--outputTransport", "--logLevel":
			w.dropped = append(w.dropped, flag)
		default:
			return fmt.Errorf("the option %s is not known", config.Visible(flag))
		}
	}
	return nil
}

func isAddress(s string) bool {
	return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://")
}

func (w *wrapped) setURL(raw string) error {
	if _, err := url.Parse(raw); err != nil || !isAddress(raw) && !strings.HasPrefix(raw, "${") {
		return fmt.Errorf("%s is not an address", config.Visible(template.MaskArgs([]string{raw})[0]))
	}
	w.url = w.variables(raw)
	return nil
}

func (w *wrapped) addHeader(line string) error {
	name, value, ok := strings.Cut(line, ":")
	if !ok {
		return fmt.Errorf("a header lacks its colon")
	}
	w.headers[strings.TrimSpace(name)] = w.variables(strings.TrimSpace(value))
	return nil
}

// wrapperVariable is ${VAR} as the client's dialect left it in a template:
// escaped text where it expands nothing, else a placeholder.
var wrapperVariable = pattern(`\$(?:\$\{|\{env:)([A-Za-z_]\w*)\}`)

// variables fills in ${VAR}, which these wrappers expand from the environment
// they are given: from env of the entry where it is there, else from ours.
func (w *wrapped) variables(s string) string {
	return wrapperVariable().ReplaceAllStringFunc(s, func(m string) string {
		name := wrapperVariable().FindStringSubmatch(m)[1]
		if v, ok := w.entry.s.Env[name]; ok {
			w.usedEnv[name] = true
			return v
		}
		return envPlaceholder(name)
	})
}
