package store

import (
	"path/filepath"
	"testing"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
)

func TestKeyPlaceOf(t *testing.T) {
	f := &cmdutil.Factory{IO: cmdutil.IO{System: config.System{Workdir: "/work dir", Home: "/h"}}}
	for to, want := range map[string]string{
		"": "", "keychain": "keychain", "passphrase": "passphrase", "env:K": "env:K",
		"file:k": "file:" + filepath.Join("/work dir", "k"), "file:/k": "file:/k",
		"auto": "?", "file:": "?", "env": "?", "kms:x": "?",
	} {
		got, err := keyPlace(f, to)
		if err != nil {
			got = "?"
		}
		if got != want {
			t.Errorf("keyPlace(%q) = %q, %v; want %q", to, got, err, want)
		}
	}
}
