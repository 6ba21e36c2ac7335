package config

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/tailscale/hujson"

	"github.com/usher-mcp/usher/config/jsonc"
	"github.com/usher-mcp/usher/internal/visible"
)

// maxNameLength bounds server names, which become part of tool names, where
// clients allow 64 to 128 characters in all.
const maxNameLength = 64

// CheckName says why a server cannot have this name, or returns nil. "@" sets
// off an account and "/" a tool, so neither may stand in a name.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("a server needs a name")
	case len(name) > maxNameLength:
		return fmt.Errorf("the name %s is longer than %d bytes", visible.Quote(name), maxNameLength)
	case name == "." || name == "..":
		return fmt.Errorf("the name %s cannot be part of an address", visible.Quote(name))
	}
	for _, r := range name {
		switch {
		case r == '@' || r == '/':
			return fmt.Errorf("the name %s must not contain %q", visible.Quote(name), r)
		case unicode.IsSpace(r) || !unicode.IsPrint(r) || visible.Invisible(r) || r == unicode.ReplacementChar:
			return fmt.Errorf("the name %s must not contain spaces or invisible characters", visible.Quote(name))
		}
	}
	return nil
}

// server reads one entry. It always returns a server; what is wrong with the
// entry is in its Problem.
func (d *decoder) server(name string, key, v hujson.Value, layer Layer) Server {
	s := fileDefaults(name)
	s.Origin = Origin{File: d.src.File, Layer: layer}
	s.Origin.Line, s.Origin.Column = d.src.Position(key.StartOffset)
	where := "server " + visible.Quote(name)
	var kind string
	errs := d.object(v, where, d.serverKeys(&s, &kind))
	if err := CheckName(name); err != nil {
		errs = append(errs, d.src.ErrorAt(key.StartOffset, "%v", err))
	}
	if len(errs) == 0 {
		if err := s.check(kind); err != nil {
			errs = append(errs, d.src.ErrorAt(key.StartOffset, "%s: %v", where, err))
		}
	}
	s.Problem = join(errs)
	if s.Problem == nil {
		for _, k := range s.unused() {
			d.warnings = append(d.warnings, d.src.WarningAt(key.StartOffset, "%s: %s has no effect on a %s server", where, k, s.Transport))
		}
	}
	d.hiddenCharacters(s, key)
	return s
}

func (d *decoder) serverKeys(s *Server, kind *string) map[string]setter {
	return map[string]setter{
		"type": d.str("type", kind), "transport": d.str("transport", kind),
		"title":   d.tuning(d.str("title", &s.Title)),
		"command": d.template("command", &s.Command), "args": d.strs("args", &s.Args),
		"env": d.dict("env", &s.Env), "cwd": d.template("cwd", &s.Cwd),
		"url": d.template("url", &s.URL), "headers": d.dict("headers", &s.Headers),
		"headersFrom": d.template("headersFrom", &s.HeadersFrom),
		"lazy":        d.tuning(d.boolean("lazy", s.Lazy)), "keepAlive": d.tuning(d.duration("keepAlive", &s.KeepAlive, 0)),
		"card": d.tuning(orKeep(&s.Card, d.template("card", &s.Card))),
		"supervision": d.nested("supervision", map[string]setter{
			"circuitThreshold": d.tuning(number(d, "circuitThreshold", &s.Supervision.CircuitThreshold, 1)),
			"circuitReset":     d.tuning(d.positive("circuitReset", &s.Supervision.CircuitReset)),
			"maxRestarts":      d.tuning(d.restarts(&s.Supervision.MaxRestarts)),
			"restartWindow":    d.tuning(d.positive("restartWindow", &s.Supervision.RestartWindow)),
			"ejectionReset":    d.tuning(d.positive("ejectionReset", &s.Supervision.EjectionReset)),
			"retry": d.tuning(d.oneOf("retry", func(v string) { s.Supervision.Retry = Retry(v) },
				string(RetrySafe), string(RetryAlways), string(RetryNever))),
		}),
		"timeouts": d.nested("timeouts", map[string]setter{
			"connect": d.tuning(d.positive("timeouts.connect", &s.Timeouts.Connect)),
			"list":    d.tuning(d.positive("timeouts.list", &s.Timeouts.List)),
			"call":    d.tuning(d.positive("timeouts.call", &s.Timeouts.Call)),
		}),
		"pins":            d.oneOf("pins", func(v string) { s.Pins = v }, PinsBlock, PinsWarn, PinsOff),
		"trust":           d.boolean("trust", &s.Trust),
		"maxMessageBytes": d.tuning(number(d, "maxMessageBytes", &s.MaxMessageBytes, 1024)),
		"singleton":       d.boolean("singleton", &s.Singleton),
		"disabled":        d.boolean("disabled", &s.Disabled),
		"tools": d.nested("tools", map[string]setter{
			"allow": d.globs("tools.allow", &s.Tools.Allow), "deny": d.globs("tools.deny", &s.Tools.Deny),
			"rename": d.dict("tools.rename", &s.Tools.Rename),
		}),
		"tags":     d.tuning(d.strs("tags", &s.Tags)),
		"oauth":    d.oauth(&s.OAuth),
		"x-origin": d.foreign(&s.Foreign),
	}
}

// restarts reads supervision.maxRestarts, in which 0 is none.
func (d *decoder) restarts(p *int) setter {
	return func(v hujson.Value) error {
		n := *p
		if err := number(d, "maxRestarts", &n, 0)(v); err != nil {
			return err
		}
		if *p = n; n == 0 {
			*p = NoRestarts
		}
		return nil
	}
}

func (d *decoder) oauth(p **OAuth) setter {
	return func(v hujson.Value) error {
		o := &OAuth{Discovery: Discovery{Mode: "auto"}}
		*p = o
		return join(d.object(v, "oauth", map[string]setter{
			"clientId":                    d.template("oauth.clientId", &o.ClientID),
			"clientSecret":                d.template("oauth.clientSecret", &o.ClientSecret),
			"clientMetadataUrl":           d.template("oauth.clientMetadataUrl", &o.ClientMetadataURL),
			"privateKey":                  d.template("oauth.privateKey", &o.PrivateKey),
			"scopes":                      d.scopes(&o.Scopes),
			"redirectUri":                 d.template("oauth.redirectUri", &o.RedirectURI),
			"issuer":                      d.template("oauth.issuer", &o.Issuer),
			"metadataUrl":                 d.template("oauth.metadataUrl", &o.MetadataURL),
			"authorizationEndpoint":       d.template("oauth.authorizationEndpoint", &o.AuthorizationEndpoint),
			"tokenEndpoint":               d.template("oauth.tokenEndpoint", &o.TokenEndpoint),
			"deviceAuthorizationEndpoint": d.template("oauth.deviceAuthorizationEndpoint", &o.DeviceAuthorizationEndpoint),
			"resource":                    d.template("oauth.resource", &o.Resource),
			"audience":                    d.template("oauth.audience", &o.Audience),
			"authorizeParams":             d.dict("oauth.authorizeParams", &o.AuthorizeParams),
			"grant": d.oneOf("oauth.grant", func(v string) { o.Grant = v }, GrantAuthorizationCode,
				GrantDeviceCode, GrantClientCredentials, GrantJWTBearer, GrantEnterprise),
			"assertion": d.template("oauth.assertion", &o.Assertion),
			"idp":       d.idp(&o.IDP),
			"dpop":      d.boolean("oauth.dpop", &o.DPoP),
			"discovery": d.discovery(&o.Discovery),
		}))
	}
}

func (d *decoder) idp(p **IDP) setter {
	return func(v hujson.Value) error {
		i := &IDP{}
		*p = i
		return join(d.object(v, "oauth.idp", map[string]setter{
			"issuer":        d.template("oauth.idp.issuer", &i.Issuer),
			"tokenEndpoint": d.template("oauth.idp.tokenEndpoint", &i.TokenEndpoint),
			"clientId":      d.template("oauth.idp.clientId", &i.ClientID),
			"clientSecret":  d.template("oauth.idp.clientSecret", &i.ClientSecret),
			"idToken":       d.template("oauth.idp.idToken", &i.IDToken),
		}))
	}
}

// discovery is "auto", "off" or an object.
func (d *decoder) discovery(p *Discovery) setter {
	mode := d.oneOf("oauth.discovery", func(v string) { p.Mode = v }, "auto", "off")
	return func(v hujson.Value) error {
		if v.Value.Kind() != '{' {
			return mode(v)
		}
		return join(d.object(v, "oauth.discovery", map[string]setter{
			"mode": mode, "allow": d.strs("oauth.discovery.allow", &p.Allow),
		}))
	}
}

// scopes is a list, or one string with blanks between, as OAuth writes it.
func (d *decoder) scopes(p *[]string) setter {
	return func(v hujson.Value) error {
		if v.Value.Kind() != '"' {
			return d.strs("oauth.scopes", p)(v)
		}
		var s string
		if err := d.template("oauth.scopes", &s)(v); err != nil {
			return err
		}
		*p = strings.Fields(s)
		return nil
	}
}

// globs is strs that also checks each pattern.
func (d *decoder) globs(what string, p *[]string) setter {
	return func(v hujson.Value) error {
		if err := d.strs(what, p)(v); err != nil {
			return err
		}
		for i, g := range *p {
			if err := checkGlob(g); err != nil {
				return d.src.ErrorAt(v.Value.(*hujson.Array).Elements[i].StartOffset, "%s: %v", what, err)
			}
		}
		return nil
	}
}

func (d *decoder) foreign(p **Foreign) setter {
	return func(v hujson.Value) error {
		raw, err := jsonc.Plain(v)
		m, ok := raw.(map[string]any)
		if err != nil || !ok {
			return nil // a note to ourselves; nothing depends on it
		}
		f := &Foreign{}
		f.Client, _ = m["client"].(string)
		f.Keys, _ = m["keys"].(map[string]any)
		*p = f
		return nil
	}
}

// hiddenCharacters warns of what a person pasted without seeing it.
func (d *decoder) hiddenCharacters(s Server, key hujson.Value) {
	_ = s.walk(func(f field, v string) (string, error) { // f never fails
		switch {
		case f.kind != secretField && visible.Suspicious(strings.Trim(v, "\n\t\r")):
			d.warnings = append(d.warnings, d.src.WarningAt(key.StartOffset, "server %s: %s holds invisible characters", visible.Quote(s.Name), f.path))
		case strings.TrimSpace(v) != v && f.kind != argField:
			d.warnings = append(d.warnings, d.src.WarningAt(key.StartOffset, "server %s: %s starts or ends with a blank", visible.Quote(s.Name), f.path))
		}
		return v, nil
	})
}
