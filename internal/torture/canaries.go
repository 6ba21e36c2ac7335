package torture

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/usher-mcp/usher/internal/fake"
)

// canary finds secrets: tokens and codes of the fake authorization server, and those
// of the configuration.
var canary = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(at|rt|rat|code|secret)-[A-Z2-7]{20,}|canary-[a-z0-9-]+`)
})

// canaries logs in, calls, looks at everything with every command, and sweeps all
// that was said and every file that was written for secrets.
func canaries(t *trial) error {
	for done := 0; done < t.goal(1, 10) && t.on(); done++ {
		if err := t.sweep(fmt.Sprint("home", done)); err != nil {
			return err
		}
	}
	t.count("secrets found", 0)
	return nil
}

func (t *trial) sweep(name string) error {
	as := fake.NewAuth(nil)
	_, stop, err := as.Listen()
	if err != nil {
		return err
	}
	defer stop()
	notes := fake.New(&fake.Options{Name: "notes"})
	defer notes.Close()
	prot := &fake.Protected{}
	address, stopNotes, err := serve(as.Protect(prot, notes.Handler()))
	if err != nil {
		return err
	}
	defer stopNotes()
	prot.Resource = address + "/mcp"
	h, err := t.newHome(name, map[string]any{
		"notes": map[string]any{"url": prot.Resource},
		"child": map[string]any{
			"command": "no-such-program", "args": []string{"--token", "canary-arg-1234567890"}, "disabled": true,
			"env": map[string]string{"API_TOKEN": "canary-env-1234567890"},
		},
		"web": map[string]any{"url": "http://127.0.0.1:9/mcp", "headers": map[string]string{"Authorization": "Bearer canary-header-123456"}, "disabled": true},
	})
	if err != nil {
		return err
	}
	if err := t.logIn(h, as); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"call", "notes", "add", "a=1", "b=2"},
		{"call", "notes", "meta", "--json"},
		{"tools", "notes"},
		{"status"},
		{"status", "--json"},
		{"doctor"},
		{"list", "--json"},
		{"list", "--long"},
		{"auth", "list", "--json"},
		{"auth", "show", "notes"},
		{"auth", "clients", "--json"},
		{"auth", "explain", "notes", "--json"},
		{"export", "claude"},
		{"logs", "notes"},
		{"-v", "call", "notes", "add", "a=1", "b=2"},
	} {
		said, _ := h.run(args...) // some report problems; what counts is their words
		t.look("usher "+strings.Join(args, " "), []byte(said))
	}
	t.sweepFiles(h.dir)
	as.RevokeAll()
	said, _ := h.run("call", "notes", "add", "a=1", "b=2")
	t.look("usher call after the end of the login", []byte(said))
	return nil
}

// logIn logs in to notes, playing the browser.
func (t *trial) logIn(h *home, as *fake.AuthServer) error {
	cmd := h.command("login", "notes", "--no-browser", "--json", "--wait", "60s")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	if err := cmd.Start(); err != nil {
		return err
	}
	var said bytes.Buffer
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said.Write(append(lines.Bytes(), '\n'))
		var line struct {
			AuthorizeURL string `json:"authorize_url"`
		}
		_ = json.Unmarshal(lines.Bytes(), &line) // lines of another kind have no address
		if line.AuthorizeURL == "" {
			continue
		}
		back, err := as.Consent(t.ctx, line.AuthorizeURL)
		if err != nil {
			return err
		}
		if status := request(t.ctx, http.MethodGet, back.String(), nil); status != http.StatusOK {
			t.breaks("the consent page's answer got HTTP %d", status)
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("usher login: %w: %s", err, &complaints)
	}
	t.look("usher login", append(said.Bytes(), complaints.Bytes()...))
	return nil
}

// sweepFiles looks into every file but the configuration, where secrets may stand.
func (t *trial) sweepFiles(dir string) {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == "mcp.json" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		t.count("files read", 1)
		t.look(d.Name(), text)
		return nil
	})
	if err != nil {
		t.breaks("sweep the files: %v", err)
	}
}

// look searches a text for secrets.
func (t *trial) look(where string, text []byte) {
	t.count("outputs and files swept", 1)
	if at := canary().FindIndex(text); at != nil {
		t.breaks("%s holds a secret: …%q…", where, text[max(0, at[0]-60):at[0]+6])
		t.count("secrets found", 1)
	}
}
