package process

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSafeEnv(t *testing.T) {
	tests := []struct {
		name    string
		windows bool
		base    []string
		extra   map[string]string
		want    []string
	}{
		{
			name: "only what is safe",
			base: []string{
				"PATH=/bin", "HOME=/h", "LANG=C", "LC_ALL=C", "LC_TIME=C", "TERM=xterm", "TZ=UTC", "XDG_RUNTIME_DIR=/r",
				"AWS_SECRET_ACCESS_KEY=s", "GITHUB_TOKEN=t", "SSH_AUTH_SOCK=/a", "LD_PRELOAD=/x.so", "NODE_OPTIONS=--require x",
				"npm_config_token=t", "home=/lower", "DBUS_SESSION_BUS_ADDRESS=d", "USHER_HOME=/u", "=odd", "odd", "",
			},
			want: []string{"HOME=/h", "LANG=C", "LC_ALL=C", "LC_TIME=C", "PATH=/bin", "TERM=xterm", "TZ=UTC", "XDG_RUNTIME_DIR=/r"},
		},
		{
			name:  "declared wins",
			base:  []string{"PATH=/bin", "HOME=/h"},
			extra: map[string]string{"PATH": "/mine", "TOKEN": "a=b", "EMPTY": ""},
			want:  []string{"EMPTY=", "HOME=/h", "PATH=/mine", "TOKEN=a=b"},
		},
		{
			name:  "a child cannot be declared to be none",
			base:  []string{"PATH=/bin", "USHER_CHILD=0"},
			extra: map[string]string{"USHER_CHILD": ""},
			want:  []string{"PATH=/bin"},
		},
		{
			name: "proxies without password",
			base: []string{"https_proxy=http://proxy:3128", "HTTP_PROXY=http://me:pw@proxy:3128", "no_proxy=localhost", "SSL_CERT_FILE=/c.pem"},
			want: []string{"SSL_CERT_FILE=/c.pem", "https_proxy=http://proxy:3128", "no_proxy=localhost"},
		},
		{
			name: "shell functions",
			base: []string{"HOME=() { :; }; echo", "PATH=/bin"},
			want: []string{"PATH=/bin"},
		},
		{
			name: "the last of several",
			base: []string{"PATH=/one", "PATH=/two"},
			want: []string{"PATH=/two"},
		},
		{
			name: "windows", windows: true,
			base:  []string{`Path=C:\bin`, `SystemRoot=C:\Windows`, "HOME=/h", "SECRET=s", `=C:=C:\x`, "Temp=t"},
			extra: map[string]string{"PATH": `C:\mine`},
			want:  []string{`PATH=C:\mine`, `SystemRoot=C:\Windows`, "Temp=t"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := safeEnv(tt.base, tt.extra, tt.windows)
			if !slices.Contains(got, "USHER_CHILD=1") {
				t.Errorf("the child is not marked as one: %q", got)
			}
			if diff := cmp.Diff(tt.want, withoutMarker(got)); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
}
