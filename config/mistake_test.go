package config

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/usher-mcp/usher/config/jsonc"
)

// TestMistakesLeaveTheRest: one wrong setting is reported where it is, has its default,
// and neither blocks the rules nor changes its neighbours.
func TestMistakesLeaveTheRest(t *testing.T) {
	d := DefaultSettings()
	tests := []struct {
		text, path, msg string
		same            func(s Settings) bool
	}{
		{`"bulk": {"concurrency": "many", "prepareTimeout": "7s"}`, "bulk.concurrency", "must be a number", func(s Settings) bool {
			return s.Bulk == Bulk{Concurrency: d.Bulk.Concurrency, PrepareTimeout: 7 * time.Second}
		}},
		{`"maxConnected": "ten"`, "maxConnected", "must be a number", func(s Settings) bool { return s.MaxConnected == d.MaxConnected }},
		{`"bulk": 3`, "bulk", "must be an object", func(s Settings) bool { return s.Bulk == d.Bulk }},
		{`"gateway": {"surface": "meat"}`, "gateway.surface", "must be one of", func(s Settings) bool { return s.Gateway.Surface == "auto" }},
		{`"gateway": {"auth": {"mode": "no"}}`, "gateway.auth.mode", "must be one of", func(s Settings) bool { return s.Gateway.Auth.Mode == "none" }},
		{`"gateway": {"publicUrl": "ftp://x"}`, "gateway.publicUrl", "must start with", func(s Settings) bool { return s.Gateway.PublicURL == "" }},
		{`"telemetry": {"sampleRatio": 7}`, "telemetry.sampleRatio", "between 0 and 1", func(s Settings) bool { return s.Telemetry.SampleRatio == 1 }},
		{`"telemetry": {"headers": {"a": [], "b": "c"}}`, "telemetry.headers", "must be a string", func(s Settings) bool { return s.Telemetry.Headers == nil }},
		{`"audit": {"enabled": "no"}`, "audit.enabled", "true or false", func(s Settings) bool { return s.Audit.Enabled }},
		{`"key": "none"`, "key", "must be auto", func(s Settings) bool { return s.Key == "auto" }},
		{`"store": "a", "store": "b"`, "store", "stands twice", func(Settings) bool { return true }},
		{`"gateway": {"profiles": {"bad": {"tools": ["a/b/c"]}, "good": {"servers": ["x"]}}}`, "gateway.profiles.bad", "more than one /", func(s Settings) bool {
			_, bad := s.Gateway.Profiles["bad"]
			return !bad && len(s.Gateway.Profiles["good"].Servers) == 1
		}},
	}
	for _, tt := range tests {
		c := loadText(t, `{"usher": {`+tt.text+`, "policy": {"deny": ["x"]}}}`)
		if c.Usher.Problem != nil || len(c.Usher.Policy.Deny) != 1 {
			t.Errorf("%s blocks: %v", tt.text, c.Usher.Problem)
		}
		if len(c.Usher.Mistakes) != 1 || c.Usher.Mistakes[0].Path != tt.path || !strings.Contains(c.Usher.Mistakes[0].Err.Error(), tt.msg) {
			t.Errorf("%s: mistakes %v", tt.text, c.Usher.Mistakes)
			continue
		}
		if e, ok := errors.AsType[*jsonc.Error](c.Usher.Mistakes[0].Err); !ok || e.Line != 1 {
			t.Errorf("%s: the mistake has no place: %v", tt.text, c.Usher.Mistakes[0].Err)
		}
		if len(c.Warnings) != 1 || c.Warnings[0].Line != 1 || !strings.Contains(c.Warnings[0].Msg, tt.msg) {
			t.Errorf("%s: warnings %v", tt.text, c.Warnings)
		}
		if !tt.same(c.Usher) {
			t.Errorf("%s: %+v", tt.text, c.Usher)
		}
	}
}

// TestRulesFailClosed: a mistake in rules or budgets, or one that may hide them.
func TestRulesFailClosed(t *testing.T) {
	for _, text := range []string{
		`{"usher": {"policy": {"deny": "all"}}}`, `{"usher": {"policy": {"deny": ["[a"]}}}`, `{"usher": {"policy": 3}}`,
		`{"usher": {"policy": {"deny": ["a"]}, "policy": {}}}`, `{"usher": {"policy": {"deny": ["a"], "deny": []}}}`,
		`{"usher": {"budgets": {"servers": {"a": {"calls": -1}}}}}`, `{"usher": {"budgets": {"calls": -1}}}`,
		`{"usher": {"budgets": {"perServer": {"run": "ten"}}}}`, `{"usher": {"budgets": []}}`,
		`{"usher": []}`,
	} {
		c := loadText(t, text)
		if e, ok := errors.AsType[*jsonc.Error](c.Usher.Problem); !ok || e.Line != 1 {
			t.Errorf("%s: problem = %v", text, c.Usher.Problem)
		}
		if len(c.Usher.Mistakes) > 0 {
			t.Errorf("%s: mistakes %v", text, c.Usher.Mistakes)
		}
	}
}

// TestLowValuesAreRaised: a value below the floor becomes the floor, with a warning.
func TestLowValuesAreRaised(t *testing.T) {
	c := loadText(t, `{"mcpServers": {"a": {"command": "x", "maxMessageBytes": 1, "supervision": {"maxRestarts": -1}}},
		"usher": {"maxConnected": 0, "budgets": {"window": "1ms", "servers": {"a": {"calls": 5, "window": 0}}}, "gateway": {"maxBodyBytes": 5}}}`)
	if c.Usher.Problem != nil || len(c.Usher.Mistakes) > 0 || c.Servers[0].Problem != nil {
		t.Fatal(c.Usher.Problem, c.Usher.Mistakes, c.Servers[0].Problem)
	}
	u, s := c.Usher, c.Servers[0]
	if u.MaxConnected != 1 || u.Gateway.MaxBodyBytes != 1024 || u.Budgets.Total.Window != time.Second ||
		u.Budgets.Servers["a"] != (Budget{Calls: 5, Window: time.Second}) {
		t.Errorf("%+v", u)
	}
	if s.MaxMessageBytes != 1024 || s.Supervision.RestartLimit() != 0 {
		t.Errorf("%+v", s)
	}
	if len(c.Warnings) != 6 {
		t.Errorf("warnings %v", c.Warnings)
	}
	for _, w := range c.Warnings {
		if w.Line == 0 || !strings.Contains(w.Msg, "must be at least") || !strings.Contains(w.Msg, "is used") {
			t.Errorf("warning %q", w)
		}
	}
}

// TestServerOptionMistakes: options that only tune a server have their default; those
// that say what runs, who is called, and what is let through keep it from being used.
func TestServerOptionMistakes(t *testing.T) {
	c := loadText(t, `{"mcpServers": {"a": {"command": "x", "timeouts": {"call": "soon", "connect": 0, "list": "5s"}, "keepAlive": [], "lazy": 3,
		"supervision": {"retry": "perhaps", "circuitThreshold": "x"}, "tags": "work", "title": 7, "maxMessageBytes": "big"}}}`)
	s := c.Servers[0]
	if s.Problem != nil {
		t.Fatal(s.Problem)
	}
	if s.Timeouts.Call != DefaultCallTimeout || s.Timeouts.Connect != DefaultConnectTimeout || s.Timeouts.List != 5*time.Second || s.KeepAlive != DefaultKeepAlive || !s.IsLazy() ||
		s.Supervision.Retry != RetrySafe || s.Supervision.CircuitThreshold != DefaultCircuitThreshold || s.Tags != nil {
		t.Errorf("%+v", s)
	}
	if len(c.Warnings) != 9 {
		t.Errorf("warnings %v", c.Warnings)
	}
	for _, text := range []string{`"pins": "blok"`, `"tools": {"deny": "all"}`, `"disabled": "yes"`, `"trust": 1`, `"singleton": 3`, `"env": 3`, `"tags": ["a"], "tags": []`} {
		c := loadText(t, `{"mcpServers": {"a": {"command": "x", `+text+`}}}`)
		if c.Servers[0].Problem == nil {
			t.Errorf("%s is let through", text)
		}
	}
}

// TestEnvironmentMistakes: the same for variables; a good value later replaces a bad one.
func TestEnvironmentMistakes(t *testing.T) {
	w := newWorld(t)
	w.write(w.userFile(), `{"usher": {"bulk": {"concurrency": "x"}}}`)
	w.env = map[string]string{"USHER_BULK_CONCURRENCY": "4", "USHER_MAX_CONNECTED": "0", "USHER_GATEWAY_SURFACE": "meat"}
	c := w.load()
	if c.Usher.Problem != nil || c.Usher.Bulk.Concurrency != 4 || c.Usher.MaxConnected != 1 || c.Usher.Gateway.Surface != "auto" {
		t.Errorf("%v, %+v", c.Usher.Problem, c.Usher)
	}
	if err := c.Usher.Mistaken("bulk"); err != nil {
		t.Errorf("a replaced value still counts: %v", err)
	}
	if err := c.Usher.Mistaken("gateway"); err == nil || !strings.Contains(err.Error(), "USHER_GATEWAY_SURFACE") {
		t.Errorf("gateway: %v", err)
	}
	if c.Usher.Mistaken("gate") != nil || len(c.Warnings) != 3 {
		t.Errorf("%v, warnings %v", c.Usher.Mistakes, c.Warnings)
	}
	w.env = map[string]string{"USHER_POLICY_DENY": "[a", "USHER_BUDGETS_CALLS": "-1"}
	if c := w.load(); len(flatten(c.Usher.Problem)) != 2 {
		t.Errorf("rules from the environment: %v", c.Usher.Problem)
	}
}

// TestUnusedSettingsAreNamed: a setting that the others make meaningless is not
// ignored without a word.
func TestUnusedSettingsAreNamed(t *testing.T) {
	for mode, want := range map[string]int{"token": 3, "oidc": 0} {
		c := loadText(t, `{"usher": {"gateway": {"auth": {"mode": "`+mode+`", "issuer": "https://i.example", "audience": "a", "scopes": ["s"]}}}}`)
		n := 0
		for _, w := range c.Warnings {
			if strings.Contains(w.Msg, "has no effect") {
				n++
			}
		}
		if n != want {
			t.Errorf("%s: warnings %v, want %d", mode, c.Warnings, want)
		}
	}
}
