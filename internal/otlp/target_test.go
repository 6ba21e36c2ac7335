package otlp

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const common, ofTraces, ofMetrics = variables, variables + "TRACES_", variables + "METRICS_"

func lookup(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}
}

func TestTargetURL(t *testing.T) {
	for _, tt := range []struct {
		name, setting   string
		env             map[string]string
		traces, metrics string // empty: not sent
	}{
		{name: "nothing"},
		{"setting", "http://c:4318", nil, "http://c:4318/v1/traces", "http://c:4318/v1/metrics"},
		{"setting with a slash", "https://c/", nil, "https://c/v1/traces", "https://c/v1/metrics"},
		{"setting for traces", "https://c/otlp/v1/traces?k=v", nil, "https://c/otlp/v1/traces?k=v", "https://c/otlp/v1/metrics?k=v"},
		{"setting with another path", "https://c/spans", map[string]string{common + "ENDPOINT": "http://e"}, "https://c/spans", ""},
		{"metrics beside it", "https://c/spans", map[string]string{ofMetrics + "ENDPOINT": "http://m/figures"}, "https://c/spans", "http://m/figures"},
		{"setting before variables", "http://c", map[string]string{common + "ENDPOINT": "http://e", ofTraces + "ENDPOINT": "http://t"}, "http://c/v1/traces", "http://c/v1/metrics"},
		{"variable", "", map[string]string{common + "ENDPOINT": " http://e:4318 "}, "http://e:4318/v1/traces", "http://e:4318/v1/metrics"},
		{"variable with a path", "", map[string]string{common + "ENDPOINT": "https://e/otlp/"}, "https://e/otlp/v1/traces", "https://e/otlp/v1/metrics"},
		{"own variable", "", map[string]string{common + "ENDPOINT": "http://e", ofTraces + "ENDPOINT": "http://t/x"}, "http://t/x", "http://e/v1/metrics"},
		{"only traces", "", map[string]string{ofTraces + "ENDPOINT": "http://t"}, "http://t/", ""},
		{"only metrics", "", map[string]string{ofMetrics + "ENDPOINT": "http://m/"}, "", "http://m/"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for signal, want := range map[Signal]string{Traces: tt.traces, Metrics: tt.metrics} {
				got, err := TargetOf(signal, &Settings{Endpoint: tt.setting, Env: lookup(tt.env)})
				if err != nil || (got == nil) != (want == "") || got != nil && got.URL != want {
					t.Errorf("%s: %v, %v, want %q", signal, got, err, want)
				}
			}
		})
	}
	if got, err := TargetOf(Traces, &Settings{}); got != nil || err != nil {
		t.Errorf("without variables: %v, %v", got, err)
	}
}

func TestTarget(t *testing.T) {
	got, err := TargetOf(Traces, &Settings{Env: lookup(map[string]string{
		common + "ENDPOINT": "http://e", common + "HEADERS": "x-key=a%20b=, authorization = Bearer c ,", common + "TIMEOUT": "1",
		ofTraces + "TIMEOUT": "2500", common + "COMPRESSION": "gzip",
	})})
	want := &Target{
		URL: "http://e/v1/traces", Headers: map[string]string{"x-key": "a b=", "authorization": "Bearer c"},
		Timeout: 2500 * time.Millisecond, Gzip: true,
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	got, err = TargetOf(Metrics, &Settings{Endpoint: "http://c", Headers: map[string]string{"k": "v"}, Env: lookup(map[string]string{
		common + "HEADERS": "x-key=a", common + "COMPRESSION": "none",
	})})
	want = &Target{URL: "http://c/v1/metrics", Headers: map[string]string{"k": "v"}, Timeout: 10 * time.Second}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

// What is wrong is told by the name of the variable, never with a header's value.
func TestTargetErrors(t *testing.T) {
	for name, v := range map[string]string{
		common + "ENDPOINT": "collector:4317", ofTraces + "ENDPOINT": "localhost", common + "TIMEOUT": "1s", common + "COMPRESSION": "zstd",
		common + "HEADERS": "hush", ofTraces + "HEADERS": "a b=hush", common + "CERTIFICATE": "/does/not/exist",
		common + "CLIENT_KEY": "/does/not/exist",
	} {
		env := map[string]string{common + "ENDPOINT": "https://e", name: v}
		got, err := TargetOf(Traces, &Settings{Env: lookup(env)})
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s=%s: %v, %v", name, v, got, err)
		}
	}
	for _, setting := range []string{"c:4318", "/path", "http://hush:hush\x7f@c"} {
		if got, err := TargetOf(Traces, &Settings{Endpoint: setting}); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v, %v", setting, got, err)
		}
	}
	for _, headers := range []string{"a=%zz", "a=b%0d%0ac", "=b", "ä=b"} {
		if got, err := TargetOf(Traces, &Settings{Env: lookup(map[string]string{common + "ENDPOINT": "http://e", common + "HEADERS": headers})}); err == nil {
			t.Errorf("headers %q: %v", headers, got)
		}
	}
}

func FuzzHeaders(f *testing.F) {
	f.Add("a=b,c=%20d")
	f.Fuzz(func(t *testing.T, list string) {
		got, err := reader{signal: Traces, env: lookup(map[string]string{common + "HEADERS": list})}.headers()
		for k, v := range got {
			if err != nil || !sendable(k, v) {
				t.Errorf("%q: %q, %v", list, got, err)
			}
		}
	})
}
