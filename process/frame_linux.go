package process

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// The host and the shim speak in frames: a length of four bytes, then a kind and a
// body. Secrets of the environment travel here and not in the shim's own
// environment or arguments.
const (
	frameSpec    = 'S' // host: what to run
	framePid     = 'P' // shim: it runs, body is its pid
	frameFailed  = 'E' // shim: it does not run, body is the errno
	frameStop    = 'T' // host: begin the ladder
	frameKill    = 'K' // host: go to its end
	frameOutcome = 'X' // shim: the tree is gone, body is the child's wait status
)

// maxFrame is above what the system accepts as arguments and environment.
const maxFrame = 16 << 20

var errFrame = errors.New("malformed frame between host and shim")

func writeFrame(w io.Writer, kind byte, body string) error {
	if len(body)+1 > maxFrame {
		return errors.New("arguments and environment are larger than 16 MiB")
	}
	b := make([]byte, 0, 5+len(body))
	b = binary.BigEndian.AppendUint32(b, uint32(len(body)+1))
	b = append(b, kind)
	b = append(b, body...)
	_, err := w.Write(b)
	return err
}

func writeNumber(w io.Writer, kind byte, n int) error {
	return writeFrame(w, kind, strconv.Itoa(n))
}

func readFrame(r io.Reader) (kind byte, body string, err error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, "", err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n == 0 || n > maxFrame {
		return 0, "", errFrame
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r, int64(n)); err != nil {
		return 0, "", io.ErrUnexpectedEOF
	}
	return b.Bytes()[0], string(b.Bytes()[1:]), nil
}

// encode joins the strings with NUL, which none of them can contain; JSON would
// bend bytes that are not UTF-8.
func (s *spec) encode() string {
	fields := make([]string, 0, 5+len(s.argv)+len(s.env))
	fields = append(fields,
		s.path, s.dir,
		strconv.FormatInt(int64(s.grace), 10), strconv.FormatInt(int64(s.kill), 10),
		strconv.Itoa(len(s.argv)))
	fields = append(fields, s.argv...)
	fields = append(fields, s.env...)
	return strings.Join(fields, "\x00")
}

func decodeSpec(body string) (*spec, error) {
	fields := strings.Split(body, "\x00")
	if len(fields) < 5 {
		return nil, errFrame
	}
	var numbers [3]int64
	for i, text := range fields[2:5] {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%w: %q is not a number", errFrame, text)
		}
		numbers[i] = n
	}
	rest := fields[5:]
	argc := numbers[2]
	if argc < 1 || argc > int64(len(rest)) {
		return nil, fmt.Errorf("%w: %d arguments announced", errFrame, argc)
	}
	return &spec{
		path: fields[0], dir: fields[1],
		grace: time.Duration(numbers[0]), kill: time.Duration(numbers[1]),
		argv: rest[:argc], env: rest[argc:],
	}, nil
}
