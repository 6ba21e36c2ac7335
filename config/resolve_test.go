package config

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/config/template"
)

// testLookup answers from fixed tables.
func testLookup() Lookup {
	env := map[string]string{"A": "a", "EMPTY": "", "DOLLAR": "${A}", "HOME": "/home/u"}
	return Lookup{
		Env: func(n string) (string, bool) { v, ok := env[n]; return v, ok },
		Secret: func(_ context.Context, n string) (string, bool, error) {
			if n == "broken" {
				return "", false, errors.New("store is locked")
			}
			return "secret-" + n, n == "s", nil
		},
		Input: func(_ context.Context, n string) (string, bool, error) { return "input-" + n, n == "i", nil },
		Command: func(_ context.Context, s Server, line string) (string, error) {
			if line == "false" {
				return "", errors.New("exit status 1")
			}
			return s.Name + "[" + line + "]\n", nil
		},
	}
}

func TestInterpolation(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"f": "from file\n", "crlf": "x\r\n", "two": "x\n\n", "big": strings.Repeat("x", maxFileValue+1)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct{ in, want, wantErr string }{
		{"plain", "plain", ""},
		{"", "", ""},
		{"${A}", "a", ""},
		{"${env:A}", "a", ""},
		{"x${A}y${env:A}z", "xayaz", ""},
		{"${NO}", "", "srv: ${NO} in env.K: the environment variable NO is not set; export NO=… or write ${NO:-default}"},
		{"${env:NO}", "", "srv: ${env:NO} in env.K: the environment variable NO is not set; export NO=… or write ${NO:-default}"},
		{"${NO:-d}", "d", ""},
		{"${env:NO:-d}", "d", ""},
		{"${A:-d}", "a", ""},
		{"${EMPTY}", "", ""},
		{"${EMPTY:-d}", "d", ""},
		{"${NO:-}", "", ""},
		{"${NO:-${A}}", "a", ""},
		{"${NO:-${NEITHER:-x}}", "x", ""},
		{`${NO:-{"a":1}}`, `{"a":1}`, ""},
		{"${NO:-a:-b}", "a:-b", ""},
		{"${DOLLAR}", "${A}", ""}, // never expanded again
		{"$A", "$A", ""},
		{"pa$$word", "pa$$word", ""},
		{"$", "$", ""},
		{"$${A}", "${A}", ""},
		{"$$${A}", "$a", ""},
		{"$$$${A}", "$${A}", ""},
		{"{A}", "{A}", ""},
		{"%A%", "%A%", ""},
		{"${secret:s}", "secret-s", ""},
		{"${secret:no}", "", "srv: ${secret:no} in env.K: there is no secret no; usher secret set no"},
		{"${secret:broken}", "", "srv: ${secret:broken} in env.K: the secret broken cannot be read: store is locked; usher secret set broken"},
		{"${input:i}", "input-i", ""},
		{"${input:no}", "", "srv: ${input:no} in env.K: there is no answer to the input no; usher secret set no"},
		{"${file:f}", "from file", ""},
		{"${file:crlf}", "x", ""},
		{"${file:two}", "x\n", ""},
		{"${file:" + filepath.Join(dir, "f") + "}", "from file", ""},
		{"${file:absent}", "", "no such file"},
		{"${file:.}", "", "not a regular file"},
		{"${file:big}", "", "larger than"},
		{"${cmd:echo {1}}", "srv[echo {1}]", ""},
		{"${cmd:false}", "", "srv: ${cmd:false} in env.K: the command gave no value: exit status 1; usher approve srv"},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			s := Server{Name: "srv", Transport: TransportStdio, Command: "x", Env: map[string]string{"K": tt.in}, Origin: Origin{File: filepath.Join(dir, "mcp.json")}}
			got, err := s.Resolve(t.Context(), testLookup())
			if tt.wantErr != "" {
				var pe *PlaceholderError
				if !errors.As(err, &pe) || !strings.Contains(err.Error(), tt.wantErr) || pe.Server != "srv" || pe.Field != "env.K" {
					t.Errorf("error = %v, want %s", err, tt.wantErr)
				}
				return
			}
			if err != nil || got.Env["K"] != tt.want {
				t.Errorf("= %q, %v; want %q", got.Env["K"], err, tt.want)
			}
			if s.Env["K"] != tt.in {
				t.Error("Resolve changed its receiver")
			}
		})
	}
}

func TestBadTemplates(t *testing.T) {
	for _, in := range []string{
		"${", "${A", "${}", "${env:}", "${A B}", "${1A}", "${A-b}", "${foo:bar}", "${secret:}", "${secret:a b}",
		"${file:}", "${cmd: }", "${NO:-${}}", "${A=B}", "${input:}", "${env:A=B}", strings.Repeat("${A:-", 12) + strings.Repeat("}", 12),
	} {
		if parts, err := template.Parse(in); err == nil {
			t.Errorf("%q was taken: %+v", in, parts)
		}
	}
}

func TestMissingHooks(t *testing.T) {
	for in, want := range map[string]string{
		"${A}":        "export A=",
		"${secret:s}": "usher secret set s",
		"${input:i}":  "usher secret set i",
		"${cmd:x}":    "usher approve srv",
	} {
		s := Server{Name: "srv", Transport: TransportStdio, Command: "x", Args: []string{"0", in}}
		_, err := s.Resolve(t.Context(), Lookup{})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "args[1]") || !strings.Contains(err.Error(), in) {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// Every string of a server but those listed takes placeholders.
func TestResolveReachesEveryField(t *testing.T) {
	literal := map[string]bool{
		"Name": true, "Title": true, "Transport": true, "Pins": true, "Supervision.Retry": true, "OAuth.Grant": true,
		"OAuth.Discovery.Mode": true, "Origin.File": true, "Origin.Layer": true, "Origin.Shadows": true,
		"Foreign.Client": true, "Tools.Allow": true, "Tools.Deny": true, "Tools.Rename": true, "Tags": true,
	}
	s := Server{OAuth: &OAuth{IDP: &IDP{}}, Foreign: &Foreign{}}
	fill(reflect.ValueOf(&s).Elem(), "", func(path string) string {
		if literal[path] {
			return "x"
		}
		return "https://${A}/" + path
	})
	s.Transport, s.Origin.File, s.HeadersFrom = TransportHTTP, "/x/y", `{"${A}": "HeadersFrom"}`
	got, err := s.Resolve(t.Context(), testLookup())
	if err != nil {
		t.Fatal(err)
	}
	fill(reflect.ValueOf(&got).Elem(), "", nil, func(path, v string) {
		if strings.Contains(v, "${") {
			t.Errorf("%s still holds %q", path, v)
		}
	})
	if got.Headers["a"] != "HeadersFrom" {
		t.Errorf("headers = %v", got.Headers)
	}
}

// fill visits every string below v, setting it with set unless that is nil.
func fill(v reflect.Value, path string, set func(string) string, seen ...func(path, v string)) {
	switch v.Kind() {
	case reflect.String:
		if set != nil {
			v.SetString(set(path))
		}
		for _, f := range seen {
			f(path, v.String())
		}
	case reflect.Pointer:
		if !v.IsNil() {
			fill(v.Elem(), path, set, seen...)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			fill(v.Field(i), strings.TrimPrefix(path+"."+name, "."), set, seen...)
		}
	case reflect.Slice:
		if set != nil && v.Type().Elem().Kind() == reflect.String {
			v.Set(reflect.ValueOf([]string{set(path)}))
		}
		for i := range v.Len() {
			fill(v.Index(i), path, nil, seen...)
		}
	case reflect.Map:
		if set != nil && v.Type().Elem().Kind() == reflect.String {
			v.Set(reflect.ValueOf(map[string]string{"K": set(path)}))
		}
		for _, k := range v.MapKeys() {
			if e := v.MapIndex(k); e.Kind() == reflect.String {
				for _, f := range seen {
					f(path, e.String())
				}
			}
		}
	}
}

func TestResolvedValuesStayInPlace(t *testing.T) {
	look := Lookup{Env: func(n string) (string, bool) {
		v, ok := map[string]string{"CRLF": "a\r\nX-Evil: 1", "NUL": "a\x00b", "FTP": "ftp://x", "BLANK": " "}[n]
		return v, ok
	}}
	http := Server{Name: "s", Transport: TransportHTTP, URL: "https://x.example"}
	with := func(f func(*Server)) Server { s := http.clone(); f(&s); return s }
	for name, s := range map[string]Server{
		"header":  with(func(s *Server) { s.Headers = map[string]string{"A": "${CRLF}"} }),
		"url":     with(func(s *Server) { s.URL = "${FTP}" }),
		"command": {Name: "s", Transport: TransportStdio, Command: "${BLANK}"},
		"env":     {Name: "s", Transport: TransportStdio, Command: "x", Env: map[string]string{"A": "${NUL}"}},
		"from":    with(func(s *Server) { s.HeadersFrom = "nothing like a header" }),
		"problem": with(func(s *Server) { s.Problem = errors.New("broken") }),
	} {
		if got, err := s.Resolve(t.Context(), look); err == nil {
			t.Errorf("%s: taken as %+v", name, got)
		} else if strings.Contains(err.Error(), "X-Evil") {
			t.Errorf("%s: the error quotes the value: %v", name, err)
		}
	}
}

func TestResolvePaths(t *testing.T) {
	for _, tt := range []struct{ file, cwd, want string }{
		{"/r/.mcp.json", "sub", "/r/sub"},
		{"/r/.usher/mcp.json", "sub", "/r/sub"},
		{"/r/.mcp.json", "/abs", "/abs"},
		{"/r/.mcp.json", "~/x", "/home/u/x"},
		{"/r/.mcp.json", "", ""},
	} {
		s := Server{Name: "s", Transport: TransportStdio, Command: "x", Cwd: tt.cwd, Origin: Origin{File: tt.file, Layer: LayerProject}}
		got, err := s.Resolve(t.Context(), testLookup())
		if err != nil || got.Cwd != tt.want {
			t.Errorf("%s %s: %q, %v", tt.file, tt.cwd, got.Cwd, err)
		}
	}
}

func TestSettingsResolve(t *testing.T) {
	s := DefaultSettings()
	s.Store, s.Telemetry.Headers = "postgres://${A}", map[string]string{"k": "${secret:s}"}
	got, err := s.Resolve(t.Context(), testLookup(), "/")
	if diff := cmp.Diff([]string{"postgres://a", "secret-s"}, []string{got.Store, got.Telemetry.Headers["k"]}); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	s.Store = "${cmd:x}"
	if _, err := s.Resolve(t.Context(), testLookup(), "/"); err == nil || !strings.Contains(err.Error(), "usher.store") {
		t.Errorf("a command in settings: %v", err)
	}
}

func FuzzInterpolation(f *testing.F) {
	for _, s := range []string{"", "${A}", "$${A}", "${A:-${B:-c}}", "$$$", "${cmd:a {b}}", "pa$$word", "${", "${é}", "${file:f}", "$$${A}", "a$${A}$"} {
		f.Add(s)
	}
	look := testLookup()
	f.Fuzz(func(t *testing.T, text string) {
		// A literal, escaped, yields itself.
		s := Server{Name: "s", Transport: TransportStdio, Command: "x", Env: map[string]string{"K": template.Escape(text)}}
		got, err := s.Resolve(context.Background(), look)
		if !strings.Contains(text, "\x00") && (err != nil || got.Env["K"] != text) {
			t.Fatalf("escape %q = %q yields %q, %v", text, s.Env["K"], got.Env["K"], err)
		}
		// Any text either fails to parse or splits into parts that write it back.
		if parts, err := template.Parse(text); err == nil {
			var b template.Builder
			for _, p := range parts {
				if p.Placeholder != nil {
					b.Raw(p.Placeholder.Raw)
				} else {
					b.Text(p.Text)
				}
			}
			if again, err := template.Parse(b.String()); err != nil || !reflect.DeepEqual(again, parts) {
				t.Fatalf("%q: %+v, written back as %q: %+v, %v", text, parts, b.String(), again, err)
			}
		}
		_ = template.MaskValue("TOKEN", text)
		_ = template.MaskValue("", text)
		_ = template.MaskArgs(strings.Fields(text))
	})
}
