package otlp

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"time"
)

// Signal is what is sent.
type Signal string

// The signals.
const (
	Traces  Signal = "traces"
	Metrics Signal = "metrics"
)

// Settings say where a collector is and what it wants.
type Settings struct {
	// Endpoint is the address of the collector, before all variables. Without a path
	// it gets the usual one of each signal; with one it is where traces go, and
	// metrics go beside it if it ends in /v1/traces. Empty: the variables say it.
	Endpoint string
	// Headers go with every request, instead of those of the variables. Empty: those.
	Headers map[string]string
	// Env looks up the variables OTEL_EXPORTER_OTLP_…. Default: none are set.
	Env func(name string) (value string, ok bool)
}

// Target is where one signal is sent, and how.
type Target struct {
	URL     string
	Headers map[string]string
	Timeout time.Duration // of one attempt
	Gzip    bool
	TLS     *tls.Config // nil: as usual
}

const (
	variables      = "OTEL_EXPORTER_OTLP_"
	defaultTimeout = 10 * time.Second
)

// TargetOf finds where a signal is sent; nil when nobody names a collector for it.
// The variables of the signal (OTEL_EXPORTER_OTLP_TRACES_…) go before those for all.
func TargetOf(signal Signal, s *Settings) (*Target, error) {
	r := reader{signal: signal, env: s.Env}
	if r.env == nil {
		r.env = func(string) (string, bool) { return "", false }
	}
	to, err := r.endpoint(s.Endpoint)
	if to == nil || err != nil {
		return nil, err
	}
	t := &Target{URL: to.String(), Headers: s.Headers, Timeout: defaultTimeout}
	if len(t.Headers) == 0 {
		if t.Headers, err = r.headers(); err != nil {
			return nil, err
		}
	}
	if name, v := r.get("TIMEOUT"); v != "" {
		ms, err := strconv.Atoi(v)
		if err != nil || ms <= 0 {
			return nil, fmt.Errorf("%s is %q, not a number of milliseconds", name, v)
		}
		t.Timeout = time.Duration(ms) * time.Millisecond
	}
	switch name, v := r.get("COMPRESSION"); v {
	case "", "none":
	case "gzip":
		t.Gzip = true
	default:
		return nil, fmt.Errorf("%s is %q, not gzip or none", name, v)
	}
	if t.TLS, err = r.tls(); err == nil && t.TLS != nil && to.Scheme == "http" {
		err = fmt.Errorf("a certificate is set for %s, which is not https", place(to))
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// reader reads the variables of one signal.
type reader struct {
	signal Signal
	env    func(string) (string, bool)
}

// get finds a variable by the end of its name, with the whole of it; empty when
// neither the signal's own nor the common one is set.
func (r reader) get(end string) (name, value string) {
	for _, name = range []string{r.own(end), variables + end} {
		if v, _ := r.env(name); strings.TrimSpace(v) != "" {
			return name, strings.TrimSpace(v)
		}
	}
	return variables + end, ""
}

func (r reader) own(end string) string {
	return variables + strings.ToUpper(string(r.signal)) + "_" + end
}

// endpoint is where the signal goes; nil: nowhere.
func (r reader) endpoint(setting string) (*url.URL, error) {
	if setting != "" {
		u, err := address("the endpoint", setting)
		if err != nil {
			return nil, err
		}
		dir, traces := strings.CutSuffix(u.Path, "/v1/traces")
		switch {
		case u.Path == "" || u.Path == "/":
			u.Path = r.path()
			return u, nil
		case r.signal == Traces:
			return u, nil // as it is
		case traces:
			u.Path = dir + r.path()
			return u, nil
		}
	}
	name, v := r.get("ENDPOINT")
	if v == "" || setting != "" && name != r.own("ENDPOINT") {
		return nil, nil
	}
	u, err := address(name, v)
	if err != nil {
		return nil, err
	}
	switch {
	case name != r.own("ENDPOINT"): // of all signals
		u.Path = path.Join("/", u.Path, r.path())
	case u.Path == "":
		u.Path = "/"
	}
	return u, nil
}

// address reads where a collector is. An error does not repeat it: there may be a
// password or a key in it.
func address(name, v string) (*url.URL, error) {
	u, err := url.Parse(v)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s is not an address such as http://localhost:4318", name)
	}
	return u, nil
}

// place is an address for people, without what may be secret in it.
func place(u *url.URL) string { return u.Scheme + "://" + u.Host + u.EscapedPath() }

func (r reader) path() string { return "/v1/" + string(r.signal) }

// headers reads a list of name=value with values as in URLs. What is wrong with it is
// told without the values, which may be secret.
func (r reader) headers() (map[string]string, error) {
	name, list := r.get("HEADERS")
	out := map[string]string{}
	for pair := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		key = strings.TrimSpace(key)
		value, err := url.PathUnescape(value)
		if !ok || err != nil || !sendable(key, strings.TrimSpace(value)) {
			return nil, fmt.Errorf("%s is not a list such as name=value,other=value", name)
		}
		out[key] = strings.TrimSpace(value)
	}
	return out, nil
}

// sendable says whether HTTP can carry a header.
func sendable(key, value string) bool {
	token := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", c)
	}
	control := func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }
	return key != "" && strings.TrimFunc(key, token) == "" && !strings.ContainsFunc(value, control)
}

// tls reads whom to trust and who we are; nil when nothing is said.
func (r reader) tls() (*tls.Config, error) {
	var out tls.Config
	if name, file := r.get("CERTIFICATE"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: %s has no certificate", name, file)
		}
	}
	certName, cert := r.get("CLIENT_CERTIFICATE")
	keyName, key := r.get("CLIENT_KEY")
	switch {
	case cert == "" && key == "" && out.RootCAs == nil:
		return nil, nil
	case cert == "" && key == "":
		return &out, nil
	case cert == "" || key == "":
		return nil, errors.New(certName + " and " + keyName + " belong together, and one is missing")
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", certName, keyName, err)
	}
	out.Certificates = []tls.Certificate{pair}
	return &out, nil
}
