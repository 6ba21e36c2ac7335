package process

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// The test binary is also the shim and every child of the tests.
func TestMain(m *testing.M) {
	Main()
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "child=") {
		childMain(strings.TrimPrefix(os.Args[1], "child="), os.Args[2:])
		syscall.Exit(0) // os.Exit would sleep under the race detector
	}
	goleak.VerifyTestMain(m)
}

// markName is in the environment of every process a test starts, so that those it
// left can be found.
const markName = "PROCESS_TEST_MARK"

func childMain(mode string, args []string) {
	switch mode {
	case "echo":
		io.Copy(os.Stdout, os.Stdin)
	case "wait":
		fmt.Println("ready")
		io.Copy(io.Discard, os.Stdin)
	case "farewell":
		fmt.Println("ready")
		io.Copy(io.Discard, os.Stdin)
		fmt.Println("farewell")
	case "hear": // leaves on SIGTERM only
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		fmt.Println("ready")
		<-term
		syscall.Exit(7)
	case "deaf":
		deaf()
	case "fork", "setsid":
		spawn("deaf", mode == "setsid")
		deaf()
	case "daemon": // double fork; this process stays
		spawn("daemonise", true)
		deaf()
	case "daemonise":
		spawn("deaf", true)
	case "abandon": // leaves a deaf grandchild and ends by itself
		spawn("deaf", true)
		fmt.Println("ready")
		syscall.Exit(4)
	case "flood":
		flood(10 << 20)
		fmt.Println("ready")
	case "exit":
		code, _ := strconv.Atoi(args[0])
		fmt.Fprintln(os.Stderr, "leaving")
		fmt.Print("last words")
		syscall.Exit(code)
	case "env":
		json.NewEncoder(os.Stdout).Encode(os.Environ())
	case "args":
		json.NewEncoder(os.Stdout).Encode(os.Args)
	case "host":
		hostMain(args)
	case "adopt":
		adoptMain(args[0], args[1])
	case "dispositions":
		dispositions()
	default:
		syscall.Exit(99)
	}
}

// deaf ignores the end of its input and every polite signal.
func deaf() {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	fmt.Println("ready")
	for {
		unix.Pause() // an empty select would be taken for a deadlock
	}
}

// spawn starts a grandchild and, for those that stay, waits until it is deaf.
func spawn(mode string, session bool) {
	cmd := exec.Command(os.Args[0], "child="+mode)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: session}
	if mode == "daemonise" {
		if err := cmd.Run(); err != nil {
			panic(err)
		}
		return
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		panic(err)
	}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	bufio.NewReader(out).ReadString('\n')
}

func flood(n int) {
	line := append(bytes.Repeat([]byte("x"), 99), '\n')
	w := bufio.NewWriter(os.Stderr)
	for range n / len(line) {
		w.Write(line)
	}
	w.Flush()
}

// hostMain is a host: it runs a child of every mode named, without or with a shim,
// says so and waits to be killed.
func hostMain(args []string) {
	shim, registry, modes := args[0], args[1], args[2:]
	for _, mode := range modes {
		opt := testOptions(markName+"="+os.Getenv(markName), shim, mode)
		opt.Registry = registry
		opt.Grace, opt.Kill = DefaultGrace, DefaultKill
		c, err := Start(context.Background(), opt)
		if err != nil {
			panic(err)
		}
		bufio.NewReader(c.Stdout()).ReadString('\n')
	}
	fmt.Println("ready")
	for {
		unix.Pause() // an empty select would be taken for a deadlock
	}
}
