package loopback

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/usher-mcp/usher/auth/oauth"
)

// holderOf names the program that listens on a TCP port of this machine, with its
// process id; "" when it cannot be told, as for a program of another user.
func holderOf(port string) string {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return ""
	}
	inodes := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			// sl, local address, remote address, state (0A: listens), …, inode
			f := strings.Fields(line)
			if len(f) > 9 && f[3] == "0A" && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", n)) {
				inodes["socket:["+f[9]+"]"] = true
			}
		}
	}
	if len(inodes) == 0 {
		return ""
	}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		if target, err := os.Readlink(link); err != nil || !inodes[target] {
			continue
		}
		dir := filepath.Dir(filepath.Dir(link))
		name, _ := os.ReadFile(filepath.Join(dir, "comm")) // the number alone says enough
		return oauth.Clean(fmt.Sprintf("%s (process %s)", bytes.TrimSpace(name), filepath.Base(dir)), 60)
	}
	return ""
}
