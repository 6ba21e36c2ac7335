package auth

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/vault"
)

// insideVariable says that the test runs in a network of its own.
const insideVariable = "USHER_TEST_OWN_NETWORK"

// TestPrivateAddressesAreNeverReached lets discovery be pointed at a cloud's
// metadata service and at private hosts that are really there, in a network of the
// test's own: not one of them may be knocked at.
func TestPrivateAddressesAreNeverReached(t *testing.T) {
	if os.Getenv(insideVariable) != "" {
		inOwnNetwork(t)
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^TestPrivateAddressesAreNeverReached$", "-test.v", "-test.timeout=60s")
	cmd.Env = append(os.Environ(), insideVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "attacks tried: 24") {
		t.Fatalf("in a network of its own: %v\n%s", err, out)
	}
}

// forbidden are hosts that are there, and must not be reached.
var forbidden = []string{"169.254.169.254", "10.0.0.1", "100.64.0.1"}

func inOwnNetwork(t *testing.T) {
	addAddresses(t)
	var knocks atomic.Int64
	for _, host := range forbidden {
		for _, port := range []string{"80", "443"} {
			watchDoor(t, net.JoinHostPort(host, port), &knocks)
		}
	}
	if n := knocks.Load(); n != int64(2*len(forbidden)) {
		t.Fatalf("%d of the doors are there", n)
	}
	knocks.Store(0)
	tried := 0
	for _, host := range forbidden {
		for _, attack := range []string{"hint", "issuer", "redirect", "endpoint"} {
			// Plain HTTP is refused before anything is dialled; with TLS only the guard
			// on the dialled address stands in the way.
			for _, scheme := range []string{"http://", "https://"} {
				tried++
				attackDiscovery(t, attack, scheme+host)
				if n := knocks.Swap(0); n != 0 {
					t.Errorf("%s%s by %s: reached %d times", scheme, host, attack, n)
				}
			}
		}
	}
	t.Logf("attacks tried: %d", tried)
}

// watchDoor listens at an address, counts who connects, and knocks once itself.
func watchDoor(t *testing.T, address string, knocks *atomic.Int64) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	counted := make(chan struct{}, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			knocks.Add(1)
			_ = c.Close()
			select {
			case counted <- struct{}{}:
			default:
			}
		}
	}()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatalf("%s is not there: %v", address, err)
	}
	_ = c.Close()
	<-counted
}

// attackDiscovery begins a login at a server that points somewhere else.
func attackDiscovery(t *testing.T, attack, target string) {
	var srv *httptest.Server
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected-resource"):
			if attack == "redirect" {
				http.Redirect(w, r, target+"/prm", http.StatusFound)
				return
			}
			issuer := srv.URL
			if attack == "issuer" {
				issuer = target
			}
			fmt.Fprintf(w, `{"resource":%q,"authorization_servers":[%q]}`, srv.URL+"/mcp", issuer)
		case strings.HasPrefix(r.URL.Path, "/.well-known/"):
			fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":%q,"token_endpoint":%q,"registration_endpoint":%q,"code_challenge_methods_supported":["S256"],"response_types_supported":["code"]}`,
				srv.URL, srv.URL+"/authorize", target+"/token", target+"/register")
		default:
			hint := srv.URL + "/.well-known/oauth-protected-resource/mcp"
			if attack == "hint" {
				hint = target + "/prm"
			}
			w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer resource_metadata=%q", hint))
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer srv.Close()
	e := New(vault.NewMemory(), nil)
	defer func() { _ = e.Close() }()
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
	defer stop()
	def := config.Server{Name: "srv", Transport: config.TransportHTTP, URL: srv.URL + "/mcp"}.WithDefaults()
	if p, err := e.Begin(ctx, Account{Server: "srv"}, def, nil); err == nil {
		t.Errorf("%s to %s: a login was begun at %s", attack, target, p.AuthorizeURL)
	}
}

// addAddresses brings the loopback device up and gives it the forbidden addresses.
func addAddresses(t *testing.T) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(fd) }()
	type request struct {
		name [16]byte
		data [24]byte
	}
	ioctl := func(op uintptr, name string, data []byte) {
		var r request
		copy(r.name[:], name)
		copy(r.data[:], data)
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), op, uintptr(unsafe.Pointer(&r))); errno != 0 {
			t.Fatalf("configure %s: %v", name, errno)
		}
	}
	up := []byte{syscall.IFF_UP | syscall.IFF_LOOPBACK, 0}
	ioctl(syscall.SIOCSIFFLAGS, "lo", up)
	for i, host := range forbidden {
		data := make([]byte, 8)
		data[0] = syscall.AF_INET
		copy(data[4:], net.ParseIP(host).To4())
		ioctl(syscall.SIOCSIFADDR, fmt.Sprintf("lo:%d", i+1), data)
	}
}
