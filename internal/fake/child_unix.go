//go:build unix

package fake

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

func deafTo() []os.Signal { return []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} }

// children starts the grandchildren that the switches ask for and leaves them
// alone. They ignore signals, hold stdout open and end by themselves.
func (s *Server) children(out, errw io.Writer) error {
	for _, name := range []string{"fork-child", "setsid-child"} {
		v, ok := s.sw.get(name)
		if !ok {
			continue
		}
		cmd := exec.Command("sh", "-c", `trap "" TERM INT HUP; exec sleep "$0"`, strconv.Itoa(v.number(300)))
		cmd.Stdout, cmd.Stderr = fileOnly(out), fileOnly(errw)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: name == "setsid-child"}
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("start a grandchild: %w", err)
		}
		s.note(nil, Entry{Event: EventChild, Name: name, Transport: "stdio", Detail: strconv.Itoa(cmd.Process.Pid)})
		_ = cmd.Process.Release()
	}
	return nil
}

// fileOnly passes on what a child can inherit; copying would need a goroutine that
// lives as long as the child.
func fileOnly(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok {
		return f
	}
	return nil
}
